"""Networks of Flax: modules of nnx and of linen."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from isotherm.foundation.errors import refuse, short
from isotherm.foundation.optional import require
from isotherm.foundation.user_functions import check_function
from isotherm.networks.checks import check_pair
from isotherm.networks.linen_dropout import disable_dropout, drops, enable_dropout
from isotherm.networks.linen_norms import forgetting, resting
from isotherm.networks.losses import Loss
from isotherm.networks.potential import Network, NetworkOptions, NetworkPotential, network_adapter, network_potential

# Arguments of linen modules that say whether they train.
_TRAINING = ("train", "training", "is_training", "deterministic", "use_running_average")


@network_adapter
def from_nnx(
    module: Any, loss: str | Loss, data: tuple[Any, Any], **options: Unpack[NetworkOptions]
) -> NetworkPotential:
    """The potential of a Flax nnx module.

    A position is a dict of weights by their dotted names; statistics of BatchNorm are a model state, of which every chain has
    its own. `potential.init` is what to pass as `init`.

    Args:
        module: an `nnx.Module`, whose weights every chain then starts from; or a function of `nnx.Rngs` that makes one, so that
            every chain starts from weights of its own. The module is called as `module(inputs)`.
        loss: "cross_entropy", "binary_cross_entropy" of a network with one output, "squared_error", or a function of (outputs,
            targets) that gives minus the log likelihood of every example; for `predict` say with `outputs` what it takes.
        data: (inputs, targets).
        **options: see `NetworkOptions`.

    Example:
        >>> from flax import nnx
        >>> data = (jnp.ones((10, 3)), jnp.zeros(10, jnp.int32))
        >>> potential = from_nnx(lambda rngs: nnx.Linear(3, 2, rngs=rngs), "cross_entropy", data, batch_size=5, weight_decay=1.0)
        >>> sorted(potential.init(jax.random.key(0)))
        ['bias', 'kernel']
    """
    nnx = require("flax.nnx", "networks")
    is_made = not isinstance(module, nnx.Module)
    if is_made and not callable(module):
        refuse("module", "an nnx.Module or a function of nnx.Rngs", type(module).__name__, "Pass one of them.")
    if is_made:
        _check_maker(module)
    one = module(nnx.Rngs(0)) if is_made else module
    weights, random, rest = (_flat(nnx, state) for state in nnx.split(nnx.clone(one), nnx.Param, nnx.RngState, ...)[1:])
    dtype = options.get("compute_dtype")
    modes = ((True, True), (True, False), (False, True), (False, False))
    graphs = {mode: _graph(nnx, one, *mode, dtype) for mode in modes}
    without_memory = _graph(nnx, one, True, False, dtype, {"momentum": 0.0})

    def merge(weights_now, state_now, graph, key=None):
        found = [
            (path, variable.replace(value))
            for known, values in ((weights, weights_now), (rest, state_now))
            for (path, variable), value in zip(known.values(), [values[name] for name in known], strict=True)
        ]
        for number, (path, variable) in enumerate(random.values()):
            value = jax.tree.leaves(variable)[0]
            if key is not None and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
                value = jax.random.fold_in(key, number)
            found.append((path, variable.replace(value)))
        return nnx.merge(graph, nnx.from_flat_state(found))

    def apply(weights_now, state_now, inputs, is_training, key):
        return called(merge(weights_now, state_now, graphs[is_training, key is not None], key), inputs)

    def statistics(weights_now, state_now, inputs):
        return called(merge(weights_now, state_now, without_memory), inputs)[1]

    def called(module_now, inputs):
        outputs = module_now(inputs)
        return outputs, _values(_flat(nnx, nnx.split(module_now, nnx.Param, nnx.RngState, ...)[3]))

    def init(key):
        return _values(_flat(nnx, nnx.state(module(nnx.Rngs(key)), nnx.Param)))

    def rebuild(weights_now, state_now):
        return merge(weights_now, state_now, graphs[False, False])

    has_dropout = any(
        (isinstance(node, nnx.Dropout) and node.rate > 0)
        or (isinstance(node, nnx.MultiHeadAttention) and node.dropout_rate > 0)
        for _, node in nnx.iter_graph(one)
    )
    network = Network(apply, init if is_made else _values(weights), _values(rest), rebuild, has_dropout, statistics)
    return network_potential(network, loss, data, **options)


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

    A position is the collection `params`; all other collections, such as `batch_stats`, are a model state. With `dropout="on"` the
    module gets the stream "dropout", and dropout layers are active whatever their arguments say.

    Args:
        module: a `linen.Module`, called as `module(inputs)`.
        loss: as in `from_nnx`.
        data: (inputs, targets).
        weights: variables as `module.init` returns them, for all chains to start from; None draws them for every chain.
        train_argument: the name of the module's argument that says whether it trains, where it is not one of "train", "training",
            "is_training", "deterministic" and "use_running_average", which are found. A name that ends in one of the last two is
            given the opposite.
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
        train_argument = next(
            (name for name in _TRAINING if name in inspect.signature(module.__call__).parameters), None
        )

    def mode(is_training):
        if train_argument is None:
            return {}
        return {train_argument: is_training != train_argument.endswith(("deterministic", "use_running_average"))}

    _check_call(module, inputs, mode(False))
    layers: list[Any] = []

    def watch(call, arguments, named, context):
        layers.append(context.module)
        return call(*arguments, **named)

    def init(key):
        with linen.intercept_methods(disable_dropout(linen)):
            return module.init({"params": key, "dropout": key}, inputs, **mode(False))

    if weights is not None and not (hasattr(weights, "keys") and "params" in weights):
        refuse(
            "weights", "variables as `module.init` returns them", short(weights), 'Pass all of them, not `["params"]`.'
        )
    variables = init(jax.random.key(0)) if weights is None else weights
    # Layers exist only while the module is called.
    with linen.intercept_methods(watch):
        jax.eval_shape(init, jax.random.key(0))
    has_dropout = any(drops(linen, layer) for layer in layers)
    others = {name: value for name, value in variables.items() if name != "params"}

    def apply(weights_now, state_now, inputs, is_training, key):
        rngs = None if key is None else {"dropout": key}
        variables = {"params": weights_now, **(state_now or {})}
        names = list(others) if is_training else []
        # The key decides about dropout, not the mode: a module may train without masks, and predict with them.
        with contextlib.ExitStack() as layers_are:
            layers_are.enter_context(
                linen.intercept_methods(disable_dropout(linen) if key is None else enable_dropout(linen))
            )
            if not is_training:
                # Without an argument that tells it, a module may normalize by batches wherever it is called.
                layers_are.enter_context(linen.intercept_methods(resting(linen)))
            try:
                found = module.apply(variables, inputs, rngs=rngs, mutable=names or False, **mode(is_training))
            except errors.ModifyScopeVariableError as error:
                remedy = "Give it an argument `train`, and let it change its statistics only where that is True."
                refuse("module", "one that predicts without changing its statistics", str(error).split(".")[0], remedy)
        outputs, after = found if names else (found, {})
        return outputs, {**state_now, **after} if others else state_now

    def statistics(weights_now, state_now, inputs):
        with linen.intercept_methods(forgetting(linen)):
            return apply(weights_now, state_now, inputs, True, None)[1]

    def rebuild(weights_now: Any, state_now: Any) -> Any:
        return module.bind({"params": weights_now, **(state_now or {})})

    def draw_weights(key: Array) -> Any:
        return init(key)["params"]

    start = draw_weights if weights is None else variables["params"]
    network = Network(apply, start, others or (), rebuild, has_dropout, statistics)
    return network_potential(network, loss, data, **options)


def _check_maker(make: Callable[..., Any]) -> None:
    """Refuse a function that takes no `nnx.Rngs`."""
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None)
    except TypeError:
        remedy = "Write `lambda rngs: Net(rngs=rngs)`, so that every chain starts from weights of its own, or pass the module."
        refuse("module", "an nnx.Module or a function of nnx.Rngs", f"a function of {signature}", remedy)


def _check_call(module: Any, inputs: Any, named: dict[str, Any]) -> None:
    """Refuse a linen module that cannot be called with the inputs and its `train_argument` alone."""
    signature = inspect.signature(module.__call__)
    try:
        signature.bind(inputs, **named)
    except TypeError:
        rule = (
            f"the name of an argument of the module, whose other arguments than the inputs have defaults: {signature}"
        )
        got = repr(next(iter(named), None))
        refuse("train_argument", rule, got, 'Pass train_argument="train", say.')


def _graph(
    nnx: Any, module: Any, is_training: bool, has_dropout: bool, dtype: Any, of_norms: dict[str, Any] | None = None
) -> Any:
    """The static part of a module that trains or not, with or without dropout, in a precision, and attributes of its BatchNorm."""
    copy = nnx.clone(module)
    change: Callable[..., None] = copy.set_attributes
    change(use_running_average=not is_training, raise_if_not_found=False)
    change(deterministic=not has_dropout, raise_if_not_found=False)
    if dtype is not None:
        # Or BatchNorm would go up to the precision of its statistics, and all that follows with it.
        change(dtype=jnp.dtype(dtype), raise_if_not_found=False)
    change(nnx.BatchNorm, raise_if_not_found=False, **(of_norms or {}))
    return nnx.split(copy, ...)[0]


def _flat(nnx: Any, state: Any) -> dict[str, Any]:
    """Paths and variables by dotted names."""
    return {".".join(map(str, path)): (path, variable) for path, variable in nnx.to_flat_state(state)}


def _values(flat: dict[str, Any]) -> Any:
    """Arrays by dotted names; () where there are none."""
    return {name: jax.tree.leaves(variable)[0] for name, (_, variable) in flat.items()} or ()
