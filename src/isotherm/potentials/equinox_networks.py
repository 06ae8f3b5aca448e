"""Networks of Equinox."""

from typing import Any, Unpack

import jax

from isotherm.foundation.errors import refuse
from isotherm.foundation.optional import require
from isotherm.potentials.losses import Loss
from isotherm.potentials.networks import Network, NetworkOptions, NetworkPotential, network_adapter, network_potential


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
    # By (is_training, has_dropout). Monte Carlo dropout predicts with running statistics and masks: only dropout is awake.
    forms = {
        (True, True): _set_dropout(eqx, one, False),
        (True, False): _set_dropout(eqx, one, True),
        (False, True): _set_dropout(eqx, evaluated, False),
        (False, False): evaluated,
    }
    structure = jax.tree.structure(state)

    def names_of(module):
        paths = jax.tree_util.tree_leaves_with_path(eqx.filter(module, eqx.is_inexact_array))
        return [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]

    def weights_of(module):
        return dict(zip(names_of(module), jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array)), strict=True))

    names = names_of(one)

    def merge(weights, is_training, has_dropout):
        arrays, static = eqx.partition(forms[is_training, has_dropout], eqx.is_inexact_array)
        return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), [weights[name] for name in names]), static)

    def apply(weights, state_now, inputs, is_training, key):
        module = merge(weights, is_training, key is not None)
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
        if state is None:
            return mapped(*arguments), state_now
        outputs, after = mapped(*arguments)
        return outputs, dict(zip(state_now, jax.tree.leaves(after), strict=True))

    def rebuild(weights, _):
        return merge(weights, False, False)

    leaves = {f"{number:03d}": leaf for number, leaf in enumerate(jax.tree.leaves(state))}
    make: Any = model
    init = (lambda key: weights_of(make(key)[0] if has_own_state else make(key))) if is_made else weights_of(one)
    nodes = jax.tree.leaves(one, is_leaf=lambda node: _is_dropout(eqx, node))
    has_dropout = any(_is_dropout(eqx, node) and node.p > 0 for node in nodes)
    return network_potential(Network(apply, init, leaves or (), rebuild, has_dropout), loss, data, **options)


def _is_dropout(eqx: Any, node: Any) -> bool:
    return isinstance(node, eqx.nn.Dropout)


def _set_dropout(eqx: Any, module: Any, is_asleep: bool) -> Any:
    """The module with all its dropout layers asleep or awake, and nothing else changed."""

    def change(node):
        return eqx.tree_at(lambda d: d.inference, node, is_asleep) if _is_dropout(eqx, node) else node

    return jax.tree.map(change, module, is_leaf=lambda node: _is_dropout(eqx, node))
