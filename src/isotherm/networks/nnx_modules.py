"""Networks of Flax nnx."""

import inspect
from collections.abc import Callable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from isotherm.foundation.errors import refuse
from isotherm.foundation.optional import require
from isotherm.networks.losses import Loss
from isotherm.networks.potential import Network, NetworkOptions, NetworkPotential, network_adapter, network_potential


@network_adapter
def from_nnx(
    module: Any, loss: str | Loss, data: tuple[Any, Any], **options: Unpack[NetworkOptions]
) -> NetworkPotential:
    """The potential of a Flax nnx module.

    A position is a dict of weights by their dotted names. BatchNorm statistics are the model state, one for each chain. Chains
    start from `potential.init` unless you pass `init`.

    Args:
        module: an `nnx.Module`, whose weights every chain then starts from; or a function of `nnx.Rngs` that returns one, for
            chains that start from weights of their own. The module is called as `module(inputs)`.
        loss: "cross_entropy", "binary_cross_entropy" of a network with one output, "squared_error", or a function of (outputs,
            targets) that returns minus the log likelihood of each example; for `predict`, state its `outputs`.
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
    if is_made:
        _check_maker(module)
    one = module(nnx.Rngs(0)) if is_made else module
    weights, random, rest = (_flat(nnx, state) for state in nnx.split(nnx.clone(one), nnx.Param, nnx.RngState, ...)[1:])
    # By (is_training, has_dropout): Monte Carlo dropout predicts with running statistics and masks.
    dtype = options.get("compute_dtype")
    graphs = {(train, drop): _graph(nnx, one, train, drop, dtype) for train in (True, False) for drop in (True, False)}
    without_memory = _graph(nnx, one, True, False, dtype, momentum=0.0)

    def merge(graph, weights_now, state_now, key=None):
        found = [
            (path, variable.replace(values[name]))
            for known, values in ((weights, weights_now), (rest, state_now))
            for name, (path, variable) in known.items()
        ]
        for number, (path, variable) in enumerate(random.values()):
            value = jax.tree.leaves(variable)[0]
            if key is not None and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
                value = jax.random.fold_in(key, number)
            found.append((path, variable.replace(value)))
        return nnx.merge(graph, nnx.from_flat_state(found))

    def call(graph, weights_now, state_now, inputs, key=None):
        module_now = merge(graph, weights_now, state_now, key)
        outputs = module_now(inputs)
        return outputs, _values(_flat(nnx, nnx.split(module_now, nnx.Param, nnx.RngState, ...)[3]))

    def apply(weights_now, state_now, inputs, is_training, key):
        return call(graphs[is_training, key is not None], weights_now, state_now, inputs, key)

    def statistics(weights_now, state_now, inputs):
        return call(without_memory, weights_now, state_now, inputs)[1]

    def init(key):
        return _values(_flat(nnx, nnx.state(module(nnx.Rngs(key)), nnx.Param)))

    def rebuild(weights_now, state_now):
        return merge(graphs[False, False], weights_now, state_now)

    has_dropout = any(
        (isinstance(node, nnx.Dropout) and node.rate > 0)
        or (isinstance(node, nnx.MultiHeadAttention) and node.dropout_rate > 0)
        for _, node in nnx.iter_graph(one)
    )
    network = Network(apply, init if is_made else _values(weights), _values(rest), rebuild, has_dropout, statistics)
    return network_potential(network, loss, data, **options)


def _check_maker(make: Any) -> None:
    """Refuse anything but a function that can be called with an `nnx.Rngs`."""
    rule = "an nnx.Module or a function of nnx.Rngs"
    if not callable(make):
        refuse("module", rule, type(make).__name__, "Pass one of them.")
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None)
    except TypeError:
        remedy = "Write `lambda rngs: Net(rngs=rngs)`, so that every chain starts from weights of its own, or pass the module."
        refuse("module", rule, f"a function of {signature}", remedy)


def _flat(nnx: Any, state: Any) -> dict[str, Any]:
    """Paths and variables by dotted names."""
    return {".".join(map(str, path)): (path, variable) for path, variable in nnx.to_flat_state(state)}


def _graph(nnx: Any, module: Any, is_training: bool, has_dropout: bool, dtype: Any, **of_norms: Any) -> Any:
    """The static part of a module in a mode and a precision, with other attributes of its BatchNorm layers."""
    copy = nnx.clone(module)
    change: Callable[..., None] = copy.set_attributes
    change(use_running_average=not is_training, raise_if_not_found=False)
    change(deterministic=not has_dropout, raise_if_not_found=False)
    if dtype is not None:
        # Otherwise BatchNorm returns the precision of its statistics, and later layers follow.
        change(dtype=jnp.dtype(dtype), raise_if_not_found=False)
    change(nnx.BatchNorm, raise_if_not_found=False, **of_norms)
    return nnx.split(copy, ...)[0]


def _values(flat: dict[str, Any]) -> Any:
    """Arrays by dotted names; () where there are none."""
    return {name: jax.tree.leaves(variable)[0] for name, (_, variable) in flat.items()} or ()
