"""Networks of Equinox."""

import copy
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from isotherm.foundation.errors import refuse
from isotherm.foundation.optional import require
from isotherm.networks.losses import Loss
from isotherm.networks.potential import Network, NetworkOptions, NetworkPotential, network_adapter, network_potential

# Batches after which an average has forgotten its start, whatever its momentum.
_MANY = 1 << 24


@network_adapter
def from_equinox(
    model: Any, loss: str | Loss, data: tuple[Any, Any], *, state: Any = None, **options: Unpack[NetworkOptions]
) -> NetworkPotential:
    """The potential of an Equinox module.

    A position is a dict of the module's floating-point arrays by their dotted names. The module sees one example at a time: it
    is mapped over the batch, with the axis name "batch" for `eqx.nn.BatchNorm`.

    Args:
        model: an `eqx.Module`, called as `model(x)`, with a state as `model(x, state)`, and with dropout as `model(...,
            key=key)`; or a function of a key that returns one, for chains that start from weights of their own. The function
            may return (module, state), as `eqx.nn.make_with_state(Module)` does.
        loss: as in `from_nnx`.
        data: (inputs, targets).
        state: the `eqx.nn.State` of a module that has one, from `eqx.nn.make_with_state`.
        **options: see `NetworkOptions`.
    """
    eqx = require("equinox", "equinox")
    is_made = not isinstance(model, eqx.Module)
    if is_made and not callable(model):
        refuse("model", "an eqx.Module or a function of a key", type(model).__name__, "Pass one of them.")
    make: Any = model
    made: Any = make(jax.random.key(0)) if is_made else model
    has_own_state = isinstance(made, tuple) and len(made) == 2
    one, state = made if has_own_state else (made, state)
    # By (is_training, has_dropout): Monte Carlo dropout predicts with running statistics and masks.
    forms = {
        (is_training, has_dropout): _changed(form, eqx.nn.Dropout, inference=not has_dropout)
        for is_training, form in ((True, one), (False, eqx.nn.inference_mode(one)))
        for has_dropout in (True, False)
    }
    without_memory = _changed(forms[True, False], eqx.nn.BatchNorm, momentum=0.0)

    def weights_of(module):
        found = jax.tree_util.tree_leaves_with_path(eqx.filter(module, eqx.is_inexact_array))
        return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in found}

    names = list(weights_of(one))

    def merge(form, weights):
        arrays, static = eqx.partition(form, eqx.is_inexact_array)
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), [weights[name] for name in names]), static)

    def call(form, weights, state_now, inputs, key=None):
        module = merge(form, weights)
        given = [] if state is None else [jax.tree.unflatten(jax.tree.structure(state), list(state_now.values()))]
        keys = None if key is None else jax.random.split(key, len(jax.tree.leaves(inputs)[0]))

        def on_example(x, key):
            outputs = module(x, *given) if key is None else module(x, *given, key=key)
            return (outputs, None) if state is None else outputs

        return jax.vmap(on_example, out_axes=(0, None), axis_name="batch")(inputs, keys)

    def apply(weights, state_now, inputs, is_training, key):
        outputs, after = call(forms[is_training, key is not None], weights, state_now, inputs, key)
        return outputs, _values(after)

    def statistics(weights, state_now, inputs):
        after: Any = call(without_memory, weights, state_now, inputs)[1]
        for norm in _layers(one, eqx.nn.BatchNorm):
            if norm.batch_counter is not None:
                # Else the statistics would be the first ones of an average.
                after = after.set(norm.batch_counter, jnp.full_like(after.get(norm.batch_counter), _MANY))
        return _values(after)

    def init(key):
        made = make(key)
        return weights_of(made[0] if has_own_state else made)

    def rebuild(weights, _):
        return merge(forms[False, False], weights)

    has_dropout = any(layer.p > 0 for layer in _layers(one, eqx.nn.Dropout))
    start = init if is_made else weights_of(one)
    network = Network(apply, start, _values(state), rebuild, has_dropout, statistics)
    return network_potential(network, loss, data, **options)


def _values(state: Any) -> Any:
    """The arrays of an `eqx.nn.State` by their numbers; () where there are none."""
    return {f"{number:03d}": leaf for number, leaf in enumerate(jax.tree.leaves(state))} or ()


def _layers(module: Any, kind: type) -> list[Any]:
    nodes = jax.tree.leaves(module, is_leaf=lambda node: isinstance(node, kind))
    return [node for node in nodes if isinstance(node, kind)]


def _changed(module: Any, kind: type, **fields: Any) -> Any:
    """The module with other fields, static ones too, in all layers of one kind."""

    def change(node):
        if not isinstance(node, kind):
            return node
        changed = copy.copy(node)
        for name, value in fields.items():
            # The module is frozen, and `eqx.tree_at` does not reach static fields.
            object.__setattr__(changed, name, value)
        return changed

    return jax.tree.map(change, module, is_leaf=lambda node: isinstance(node, kind))
