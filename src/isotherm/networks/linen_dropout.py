"""Layers of Flax's linen that drop, put to sleep or kept awake whatever their module tells them."""

from collections.abc import Callable
from typing import Any

Interceptor = Callable[..., Any]


def drops(linen: Any, layer: Any) -> bool:
    """Whether a layer would drop anything in training."""
    if isinstance(layer, linen.MultiHeadDotProductAttention):
        return layer.dropout_rate > 0
    return isinstance(layer, linen.Dropout) and layer.rate > 0


def disable_dropout(linen: Any) -> Interceptor:
    """For `linen.intercept_methods`: nothing is dropped, and no stream of masks is asked for."""

    def intercept(call, arguments, named, context):
        layer = context.module
        if isinstance(layer, linen.Dropout):
            return arguments[0]
        return call(*arguments, **(_with_deterministic(layer, named, True) if _attends(linen, context) else named))

    return intercept


def enable_dropout(linen: Any) -> Interceptor:
    """For `linen.intercept_methods`: all layers drop."""

    def intercept(call, arguments, named, context):
        layer = context.module
        if isinstance(layer, linen.Dropout) and layer.deterministic is not False:
            rngs = {layer.rng_collection: layer.make_rng(layer.rng_collection)}
            return layer.clone(deterministic=False).apply({}, arguments[0], rngs=rngs)
        return call(*arguments, **(_with_deterministic(layer, named, False) if _attends(linen, context) else named))

    return intercept


def _attends(linen: Any, context: Any) -> bool:
    return context.method_name == "__call__" and isinstance(context.module, linen.MultiHeadDotProductAttention)


def _with_deterministic(layer: Any, named: dict[str, Any], is_deterministic: bool) -> dict[str, Any]:
    """The arguments of attention with our word on dropout, which it takes from its call or from its field, not from both."""
    # The layer is bound for this one call of the module, and frozen.
    object.__setattr__(layer, "deterministic", None)
    return {**named, "deterministic": is_deterministic}
