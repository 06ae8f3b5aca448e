"""Networks of Flax linen."""

import inspect
from collections.abc import Callable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from isotherm.foundation.errors import refuse, short
from isotherm.foundation.optional import require
from isotherm.foundation.user_functions import check_function
from isotherm.networks.checks import check_pair
from isotherm.networks.losses import Loss
from isotherm.networks.potential import Network, NetworkOptions, NetworkPotential, network_adapter, network_potential

# Arguments of linen modules that say whether they train, or whether they do not.
_TRAINING = ("train", "training", "is_training")
_INFERENCE = ("deterministic", "use_running_average")


@network_adapter
def from_linen(
    module: Any,
    loss: str | Loss,
    data: tuple[Any, Any],
    *,
    weights: Any = None,
    train_argument: str | None = None,
    **options: Unpack[NetworkOptions],
) -> NetworkPotential:
    """The potential of a Flax linen module.

    A position is the collection `params`; all other collections, such as `batch_stats`, are the model state. With
    `dropout="on"` the module gets the stream "dropout", and dropout layers are active whatever their arguments say.

    Args:
        module: a `linen.Module`, called as `module(inputs)`.
        loss: as in `from_nnx`.
        data: (inputs, targets).
        weights: variables as `module.init` returns them, for all chains to start from; None draws them for every chain.
        train_argument: the name of the module's argument that says whether it trains. "train", "training", "is_training",
            "deterministic" and "use_running_average" are found without it. A name that ends in one of the last two gets the
            opposite value.
        **options: see `NetworkOptions`.
    """
    linen, errors = require("flax.linen", "networks"), require("flax.errors", "networks")
    check_pair(data)
    prepare = options.get("prepare")
    inputs = jax.tree.map(lambda leaf: jnp.asarray(leaf[:1]), data[0])
    if prepare is not None:
        check_function("prepare", prepare, "lambda inputs: inputs / 255.0", 1)
        inputs = prepare(inputs)
    if isinstance(module, type):
        name = module.__name__
        refuse("module", "a linen module", f"the class {name}", f"Make one of it: `iso.from_linen({name}(...), ...)`.")
    if train_argument is None:
        known = inspect.signature(module.__call__).parameters
        train_argument = next((name for name in (*_TRAINING, *_INFERENCE) if name in known), None)

    def mode(is_training):
        return {} if train_argument is None else {train_argument: is_training != train_argument.endswith(_INFERENCE)}

    _check_call(module, inputs, mode(False))
    if weights is not None and not (hasattr(weights, "keys") and "params" in weights):
        rule, remedy = "variables as `module.init` returns them", 'Pass all of them, not `["params"]`.'
        refuse("weights", rule, short(weights), remedy)

    def init(key):
        with linen.intercept_methods(_interceptor(linen, has_dropout=False)):
            return module.init({"params": key, "dropout": key}, inputs, **mode(False))

    variables = init(jax.random.key(0)) if weights is None else weights
    others = {name: value for name, value in variables.items() if name != "params"}

    def bound(weights_now, state_now):
        return {"params": weights_now, **(state_now or {})}

    def call(weights_now, state_now, inputs, is_training, key, norms):
        rngs = None if key is None else {"dropout": key}
        names = list(others) if is_training else []
        settings = {"rngs": rngs, "mutable": names or False, **mode(is_training)}
        # The key decides about dropout, not the mode: a module may train without masks, and predict with them.
        with linen.intercept_methods(_interceptor(linen, key is not None, norms)):
            try:
                found = module.apply(bound(weights_now, state_now), inputs, **settings)
            except errors.ModifyScopeVariableError as error:
                remedy = "Give it an argument `train`, and let it change its statistics only where that is True."
                refuse("module", "one that predicts without changing its statistics", str(error).split(".")[0], remedy)
        outputs, after = found if names else (found, {})
        return outputs, {**state_now, **after} if others else state_now

    def apply(weights_now, state_now, inputs, is_training, key):
        # A module without a training argument may normalize by batches in predictions too.
        return call(weights_now, state_now, inputs, is_training, key, None if is_training else "running")

    def statistics(weights_now, state_now, inputs):
        return call(weights_now, state_now, inputs, True, None, "forgetting")[1]

    def rebuild(weights_now: Any, state_now: Any) -> Any:
        return module.bind(bound(weights_now, state_now))

    start = (lambda key: init(key)["params"]) if weights is None else variables["params"]
    network = Network(apply, start, others or (), rebuild, _has_dropout(linen, init), statistics)
    return network_potential(network, loss, data, **options)


def _check_call(module: Any, inputs: Any, named: dict[str, Any]) -> None:
    """Refuse a module that cannot be called with the inputs and its `train_argument` alone."""
    signature = inspect.signature(module.__call__)
    try:
        signature.bind(inputs, **named)
    except TypeError:
        rule = f"the name of an argument of the module, {signature}"
        remedy = 'Pass train_argument="train", say. Arguments other than the inputs need defaults.'
        refuse("train_argument", rule, repr(next(iter(named), None)), remedy)


def _interceptor(linen: Any, has_dropout: bool, norms: str | None = None) -> Callable[..., Any]:
    """For `linen.intercept_methods`: switches dropout and sets the mode of BatchNorm, whatever the module passes to its layers.

    `norms` is "running" (normalize by the running statistics), "forgetting" (replace these by the batch's), or None.
    """

    def intercept(call, arguments, named, context):
        layer, is_call = context.module, context.method_name == "__call__"
        # A bound layer is frozen, and lives for one call. It takes a value from its field or from its call, not from both.
        if isinstance(layer, linen.Dropout):
            if not has_dropout:
                return arguments[0]
            if layer.deterministic is not False:
                rngs = {layer.rng_collection: layer.make_rng(layer.rng_collection)}
                return layer.clone(deterministic=False).apply({}, arguments[0], rngs=rngs)
        elif is_call and isinstance(layer, linen.MultiHeadDotProductAttention):
            object.__setattr__(layer, "deterministic", None)
            named = {**named, "deterministic": not has_dropout}
        elif is_call and isinstance(layer, linen.BatchNorm) and norms == "running":
            object.__setattr__(layer, "use_running_average", None)
            arguments, named = arguments[:1], {**named, "use_running_average": True}
        elif is_call and isinstance(layer, linen.BatchNorm) and norms == "forgetting":
            object.__setattr__(layer, "momentum", 0.0)
        return call(*arguments, **named)

    return intercept


def _has_dropout(linen: Any, init: Callable[..., Any]) -> bool:
    layers: list[Any] = []

    def watch(call, arguments, named, context):
        layers.append(context.module)
        return call(*arguments, **named)

    # Layers exist only while the module is called.
    with linen.intercept_methods(watch):
        jax.eval_shape(init, jax.random.key(0))
    return any(
        (isinstance(layer, linen.Dropout) and layer.rate > 0)
        or (isinstance(layer, linen.MultiHeadDotProductAttention) and layer.dropout_rate > 0)
        for layer in layers
    )
