"""Networks of Equinox."""

import copy
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from isotherm.foundation.errors import refuse
from isotherm.foundation.optional import require
from isotherm.networks.losses import Loss
from isotherm.networks.potential import Network, NetworkOptions, NetworkPotential, network_adapter, network_potential

# Batches after which the start of an average is forgotten, whatever its momentum.
_MANY = 1 << 24


@network_adapter
def from_equinox(
    model: Any, loss: str | Loss, data: tuple[Any, Any], *, state: Any = None, **options: Unpack[NetworkOptions]
) -> NetworkPotential:
    """The potential of an Equinox module.

    A position is a dict of the module's floating-point arrays by their dotted names. The module is mapped over the batch, with the
    axis name "batch" that `eqx.nn.BatchNorm` needs: it sees one example at a time.

    Args:
        model: an `eqx.Module`, called as `model(x)`, with a state as `model(x, state)`, and with dropout as `model(..., key=key)`;
            or a function of a key that makes one, so that every chain starts from weights of its own; with its state, as
            `eqx.nn.make_with_state(Module)` does.
        loss: as in `from_nnx`.
        data: (inputs, targets).
        state: an `eqx.nn.State`, from `eqx.nn.make_with_state`, for modules that have one.
        **options: see `NetworkOptions`.
    """
    eqx = require("equinox", "equinox")
    is_made = not isinstance(model, eqx.Module)
    if is_made and not callable(model):
        refuse("model", "an eqx.Module or a function of a key", type(model).__name__, "Pass one of them.")
    made: Any = model(jax.random.key(0)) if is_made else model
    has_own_state = isinstance(made, tuple) and len(made) == 2
    one, state = made if has_own_state else (made, state)
    evaluated = eqx.nn.inference_mode(one)
    # By (is_training, has_dropout). Monte Carlo dropout predicts with running statistics and masks: only dropout is active.
    forms = {
        (True, True): _set_dropout(eqx, one, False),
        (True, False): _set_dropout(eqx, one, True),
        (False, True): _set_dropout(eqx, evaluated, False),
        (False, False): evaluated,
    }
    without_memory = _set_momentum(eqx, forms[True, False], 0.0)
    structure = jax.tree.structure(state)

    def names_of(module):
        paths = jax.tree_util.tree_leaves_with_path(eqx.filter(module, eqx.is_inexact_array))
        return [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]

    def weights_of(module):
        return dict(zip(names_of(module), jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array)), strict=True))

    names = names_of(one)

    def merge(weights, form):
        arrays, static = eqx.partition(form, eqx.is_inexact_array)
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), [weights[name] for name in names]), static)

    def apply(weights, state_now, inputs, is_training, key):
        outputs, after = called(merge(weights, forms[is_training, key is not None]), state_now, inputs, key)
        return outputs, state_now if state is None else values_of(state_now, after)

    def statistics(weights, state_now, inputs):
        after = called(merge(weights, without_memory), state_now, inputs, None)[1]
        return state_now if state is None else values_of(state_now, _as_after_many(eqx, one, after))

    def values_of(state_now, after):
        return dict(zip(state_now, jax.tree.leaves(after), strict=True))

    def called(module, state_now, inputs, key):
        axes: list[Any] = [0]
        arguments = [inputs]
        if state is not None:
            axes, arguments = [0, None], [inputs, jax.tree.unflatten(structure, list(state_now.values()))]
        if key is None:
            mapped = jax.vmap(module, tuple(axes), 0 if state is None else (0, None), axis_name="batch")
        else:
            keys = jax.random.split(key, len(jax.tree.leaves(inputs)[0]))
            arguments = [*arguments, keys]
            keyed = lambda *given: module(*given[:-1], key=given[-1])  # noqa: E731
            mapped = jax.vmap(keyed, (*axes, 0), 0 if state is None else (0, None), axis_name="batch")
        return (mapped(*arguments), None) if state is None else mapped(*arguments)

    def rebuild(weights, _):
        return merge(weights, forms[False, False])

    leaves = {f"{number:03d}": leaf for number, leaf in enumerate(jax.tree.leaves(state))}
    make: Any = model
    init = (lambda key: weights_of(make(key)[0] if has_own_state else make(key))) if is_made else weights_of(one)
    nodes = jax.tree.leaves(one, is_leaf=lambda node: _is_dropout(eqx, node))
    has_dropout = any(_is_dropout(eqx, node) and node.p > 0 for node in nodes)
    return network_potential(
        Network(apply, init, leaves or (), rebuild, has_dropout, statistics), loss, data, **options
    )


def _norms(eqx: Any, module: Any) -> list[Any]:
    nodes = jax.tree.leaves(module, is_leaf=lambda node: isinstance(node, eqx.nn.BatchNorm))
    return [node for node in nodes if isinstance(node, eqx.nn.BatchNorm)]


def _set_momentum(eqx: Any, module: Any, momentum: float) -> Any:
    """The module with another momentum in all its layers of BatchNorm."""

    def change(node):
        if not isinstance(node, eqx.nn.BatchNorm):
            return node
        changed = copy.copy(node)
        # A static field of a frozen module, which `eqx.tree_at` does not reach.
        object.__setattr__(changed, "momentum", momentum)
        return changed

    return jax.tree.map(change, module, is_leaf=lambda node: isinstance(node, eqx.nn.BatchNorm))


def _as_after_many(eqx: Any, module: Any, state: Any) -> Any:
    """The state with counters of batches so high that statistics are taken as they are, not as the first ones of an average."""
    for node in _norms(eqx, module):
        if node.batch_counter is not None:
            state = state.set(node.batch_counter, jnp.full_like(state.get(node.batch_counter), _MANY))
    return state


def _is_dropout(eqx: Any, node: Any) -> bool:
    return isinstance(node, eqx.nn.Dropout)


def _set_dropout(eqx: Any, module: Any, is_asleep: bool) -> Any:
    """The module with all its dropout layers switched off or on, and nothing else changed."""

    def change(node):
        return eqx.tree_at(lambda d: d.inference, node, is_asleep) if _is_dropout(eqx, node) else node

    return jax.tree.map(change, module, is_leaf=lambda node: _is_dropout(eqx, node))
