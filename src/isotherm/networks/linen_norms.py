"""BatchNorm of Flax's linen, told what to do whatever its module says."""

from collections.abc import Callable
from typing import Any

Interceptor = Callable[..., Any]


def resting(linen: Any) -> Interceptor:
    """For `linen.intercept_methods`: BatchNorm normalizes by its running statistics, and does not change them."""

    def intercept(call, arguments, named, context):
        if _normalizes(linen, context):
            # The layer is bound for this one call, and frozen; it takes this from its field or from its call, not from both.
            object.__setattr__(context.module, "use_running_average", None)
            return call(*arguments[:1], **{**named, "use_running_average": True})
        return call(*arguments, **named)

    return intercept


def forgetting(linen: Any) -> Interceptor:
    """For `linen.intercept_methods`: in training the running statistics of BatchNorm become those of the batch alone."""

    def intercept(call, arguments, named, context):
        if _normalizes(linen, context):
            object.__setattr__(context.module, "momentum", 0.0)
        return call(*arguments, **named)

    return intercept


def _normalizes(linen: Any, context: Any) -> bool:
    return context.method_name == "__call__" and isinstance(context.module, linen.BatchNorm)
