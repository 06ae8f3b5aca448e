"""Potentials of neural networks, whatever library they are written with."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.calls import checked_call
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.docstrings import documented
from isotherm.foundation.errors import check_choice, check_real, refuse
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.randomness import words
from isotherm.foundation.user_functions import call_traced, check_function
from isotherm.networks import diagnosis
from isotherm.networks.checks import check_outputs, check_pair
from isotherm.networks.losses import Loss, as_loss, constant_loss, output_kind
from isotherm.potentials.batches import Batch
from isotherm.potentials.likelihood import LikelihoodPotential
from isotherm.potentials.potential import Potential

F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True, eq=False)
class Network(Part):
    """A network as pure functions; the adapters make one of a module.

    Attributes:
        apply: maps (weights, model_state, inputs, is_training, key) to (outputs, next model_state). In training BatchNorm uses the
            batch's statistics; without a key dropout is off.
        init: weights, or a function of a key that makes them.
        model_state: what the network carries beside its weights, such as BatchNorm statistics; () if nothing.
        rebuild: maps (weights, model_state) to a module of the library that the network came from.
        has_dropout: whether it has layers of dropout.
        statistics: maps (weights, model_state, inputs) to the model state after a pass in training that forgets the statistics of
            BatchNorm from before; None where there is nothing to forget.
    """

    apply: Static[Callable[..., tuple[Array, Any]]]
    init: Any
    model_state: Any
    rebuild: Static[Callable[[Any, Any], Any]]
    has_dropout: Static[bool] = False
    statistics: Static[Callable[[Any, Any, Any], Any] | None] = None


@dataclasses.dataclass(frozen=True, eq=False)
class WeightDecay(Part):
    """The log density of a Gaussian prior of precision `precision` on every weight, without its constant."""

    precision: float

    def __call__(self, weights: Any) -> Array:
        """-precision / 2 * |weights|^2."""
        # One sum over one vector: an accelerator would spend longer on starting a sum for every leaf.
        leaves = [jnp.ravel(leaf).astype(jnp.result_type(float)) for leaf in jax.tree.leaves(weights)]
        return -0.5 * self.precision * jnp.sum(jnp.square(jnp.concatenate(leaves)))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class NetworkPotential(LikelihoodPotential):
    """U(w) = precision / 2 * |w|^2 + (N/n) * sum of losses: a network with a Gaussian prior on its weights.

    Attributes:
        network: the network.
        loss: maps (outputs, targets) to minus the log likelihood of every example.
        has_dropout: whether dropout is on while sampling, with masks of the run's seed.
        compute_dtype: what the network computes in; weights, statistics and the loss stay in their own precision.
        prepare: maps inputs as they are stored to what the network takes, in training and prediction; None leaves them.
    """

    function_name: ClassVar[str] = "loss"
    # BatchNorm does; losses are looked at when the potential is built.
    may_mix_examples: ClassVar[bool] = True
    is_network: ClassVar[bool] = True  # pyright: ignore[reportIncompatibleVariableOverride]

    network: Network
    loss: Loss
    has_dropout: Static[bool] = False
    compute_dtype: Static[str | None] = None
    prepare: Callable[[Any], Any] | None = None

    @property
    def is_exact(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every iteration sees all data through all of the network."""
        return super().is_exact and not self.has_dropout

    @property
    def init(self) -> Any:
        """The module's weights, or a function of a key that draws them: where chains start."""
        return self.network.init

    def on_device(self) -> Potential:
        # Weights to start from are no part of the program.
        return super().on_device().replace_unchecked(network=self.network.replace_unchecked(init=None))

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        return words(key_own, iterations, 2) if self.has_dropout else ()

    def outputs(
        self, weights: Any, inputs: Any, model_state: Any = None, key: Array | None = None, is_training: bool = False
    ) -> Array:
        """Outputs of the network at `weights`, such as logits, in single precision.

        BatchNorm uses the statistics in `model_state`, which belong to the weights: pass those of the draw. With a `key`
        dropout stays on, as Monte Carlo dropout wants it.
        """
        state = self.init_model_state() if model_state is None else model_state
        return self._forward(weights, state, inputs, is_training, key)[0]

    def batch_statistics(self, weights: Any, inputs: Any, model_state: Any) -> Any:
        """The model state after a pass in training, without dropout, whose BatchNorm statistics are those of `inputs` alone."""
        forward = self.network.statistics
        if forward is None:
            return self._forward(weights, model_state, inputs, True, None)[1]
        after = forward(*self._cast(weights, model_state, inputs))
        return jax.tree.map(lambda new, old: new.astype(old.dtype), after, model_state)

    @property
    def output_kind(self) -> str | None:
        """What the outputs are, as the loss says: "logits" of classes, one "logit", or "values"; None where nobody said."""
        return output_kind(self.loss)

    def diagnose(self, run: RunView) -> list[Check]:
        precision = self.log_prior.precision if isinstance(self.log_prior, WeightDecay) else None
        return diagnosis.diagnose(self, precision, run)

    @property
    def loss_without_inputs(self) -> float | None:
        """The lowest loss over all examples of one prediction for all inputs; None where it is not known."""
        return None if self.is_streamed or self.num_used is not None else constant_loss(self.loss, self.data[1])

    def module(self, weights: Any, model_state: Any = None) -> Any:
        """The module at `weights`, as the library that it came from has it."""
        return self.network.rebuild(weights, self.init_model_state() if model_state is None else model_state)

    def _log_likelihoods(self, position: Any, batch: Batch, noise: Any, model_state: Any) -> tuple[Array, Any]:
        inputs, targets = batch.examples
        key = None
        if self.has_dropout and noise is not None:
            key = jax.random.wrap_key_data(noise, impl="threefry2x32")
        forward = (self._forward, position, model_state, inputs, True, key)
        taken = f"Inputs of a batch have {_shapes(inputs)}."
        outputs, model_state = call_traced("network", "one that takes the inputs of the data", *forward, where=taken)
        given = f"Outputs of a batch have {_shapes(outputs)}, and targets {_shapes(targets)}."
        losses = call_traced("loss", "one that takes outputs and targets", self.loss, outputs, targets, where=given)
        return -losses, model_state

    def _forward(self, weights: Any, model_state: Any, inputs: Any, is_training: bool, key: Any) -> tuple[Array, Any]:
        outputs, after = self.network.apply(*self._cast(weights, model_state, inputs), is_training, key)
        after = jax.tree.map(lambda new, old: new.astype(old.dtype), after, model_state)
        return outputs.astype(jnp.promote_types(outputs.dtype, jnp.float32)), after

    def _cast(self, weights: Any, model_state: Any, inputs: Any) -> tuple[Any, Any, Any]:
        """What the network takes: prepared inputs, in the precision that it computes in."""
        if self.prepare is not None:
            inputs = call_traced("prepare", "a function of the inputs of a batch", self.prepare, inputs)
        if self.compute_dtype is not None:
            weights, inputs = _cast(weights, self.compute_dtype), _cast(inputs, self.compute_dtype)
        return weights, model_state, inputs


class NetworkOptions(TypedDict, total=False):
    """Options of `from_nnx`, `from_linen` and `from_equinox`.

    Attributes:
        batch_size: n; None takes all data in every iteration.
        weight_decay: precision of a Gaussian prior on every weight, BatchNorm's and biases included, in the convention of
            `potentials.to_bayesian`; 0 is a flat prior.
        log_prior: a log prior of another form, in place of `weight_decay`.
        coupling_includes_prior: whether the energies that couplings read hold the prior. The thesis' networks leave it out: its
            partitions and corrections are about losses.
        outputs: what the outputs of the network are, for a loss that is a function of yours: "logits" of classes along the last
            axis, "logit" of class 1 (one output), or "values" of a regression or a rate. `iso.predictive.predict` asks.
        dropout: "off" or "on" while sampling. With masks that change, energies are noisy and the posterior is another. A
            module with dropout warns that it is off, unless this is given.
        compute_dtype: such as jnp.bfloat16, for mixed precision.
        prepare: maps inputs as stored to what the network takes, such as `data.Normalize(mean, std)` for uint8 images.
        augment: maps (key, (inputs, targets)) to the same, such as those of `isotherm.networks.augment`.
        batching: "epochs", "independent" or "replacement".
        is_batch_shared: whether the chains of a run see the same batches.
        num_used: how many rows count, where there is room to grow.
        is_streamed: whether the data stay on the host and only batches travel.
    """

    batch_size: int | None
    weight_decay: float
    log_prior: Callable[[Any], Array] | None
    coupling_includes_prior: bool
    outputs: str | None
    dropout: str
    compute_dtype: Any
    prepare: Callable[[Any], Any] | None
    augment: Callable[[Array, Any], Any] | None
    batching: str
    is_batch_shared: bool
    num_used: int | None
    is_streamed: bool


NETWORK_DEFAULTS: NetworkOptions = {
    "batch_size": None,
    "weight_decay": 0.0,
    "log_prior": None,
    "coupling_includes_prior": True,
    "outputs": None,
    "dropout": "off",
    "compute_dtype": None,
    "prepare": None,
    "augment": None,
    "batching": LikelihoodPotential.batching,
    "is_batch_shared": LikelihoodPotential.is_batch_shared,
    "num_used": None,
    "is_streamed": False,
}


def network_adapter(function: F) -> F:
    """A decorator for functions with `NetworkOptions`: their help lists these, and a call with wrong ones is refused."""
    return checked_call(NETWORK_DEFAULTS)(documented((NetworkOptions, NETWORK_DEFAULTS))(function))


def network_potential(
    network: Network, loss: str | Loss, data: Any, **given: Unpack[NetworkOptions]
) -> NetworkPotential:
    """The potential of a network; see `NetworkOptions`."""
    options: Any = {**NETWORK_DEFAULTS, **given}
    weight_decay, log_prior = options["weight_decay"], options["log_prior"]
    check_real("weight_decay", weight_decay, "Give the precision of the prior, or 0 for a flat one.", minimum=0.0)
    if log_prior is not None and weight_decay > 0:
        refuse("log_prior", "None beside a weight decay", repr(log_prior), "Give one of them.")
    if log_prior is not None:
        check_function("log_prior", log_prior, "lambda weights: ...", 1)
    if options["prepare"] is not None:
        check_function("prepare", options["prepare"], "lambda inputs: inputs / 255.0", 1)
    check_pair(data)
    if network.has_dropout and "dropout" not in given:
        message = 'The network has dropout, which is off while sampling. Pass dropout="off" if that is meant, or dropout="on".'
        warnings.warn(message, stacklevel=4)
    if options["prepare"] is None and any(
        getattr(leaf, "dtype", None) == np.uint8 for leaf in jax.tree.leaves(data[0])
    ):
        message = "Inputs are bytes, from 0 to 255, and go to the network as they are. "
        message += "Pass prepare=iso.networks.Normalize(mean, std)."
        warnings.warn(message, stacklevel=4)
    dtype = options["compute_dtype"]
    if dtype is not None and not jnp.issubdtype(jnp.dtype(dtype), jnp.floating):
        refuse("compute_dtype", "a floating-point type", repr(dtype), "Give jnp.bfloat16, or None.")
    potential = NetworkPotential(
        log_likelihood=network.apply,
        log_prior=log_prior if weight_decay == 0 else WeightDecay(weight_decay),
        data=tuple(data),
        batch_size=options["batch_size"],
        batching=options["batching"],
        is_batch_shared=options["is_batch_shared"],
        model_state=network.model_state if jax.tree.leaves(network.model_state) else None,
        augment=options["augment"],
        coupling_includes_prior=options["coupling_includes_prior"],
        num_used=options["num_used"],
        is_streamed=options["is_streamed"],
        network=network,
        loss=as_loss(loss, options["outputs"]),
        has_dropout=check_choice("dropout", options["dropout"], ("off", "on")) == "on",
        compute_dtype=None if dtype is None else jnp.dtype(dtype).name,
        prepare=options["prepare"],
    )
    check_outputs(potential, stacklevel=4)
    return potential


def _shapes(tree: Any) -> str:
    return "shape " + ", ".join(str(np.shape(leaf)) for leaf in jax.tree.leaves(tree))


def _cast(tree: Any, dtype: str) -> Any:
    """Floating-point leaves in another precision; others, such as labels and token numbers, as they are."""

    def cast(leaf):
        return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, tree)
