"""Potentials of neural networks, from any library."""

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
    """A network as pure functions; adapters such as `from_nnx` make one from a module.

    Attributes:
        apply: maps (weights, model_state, inputs, is_training, key) to (outputs, next model_state). In training BatchNorm uses
            the batch's statistics; without a key dropout is off.
        init: weights, or a function of a key that draws them.
        model_state: state beside the weights, such as BatchNorm statistics; () if there is none.
        rebuild: maps (weights, model_state) to a module of the original library.
        has_dropout: whether it has dropout layers.
        statistics: maps (weights, model_state, inputs) to the model state after a training pass that replaces the BatchNorm
            statistics by those of the inputs; None without BatchNorm.
    """

    apply: Static[Callable[..., tuple[Array, Any]]]
    init: Any
    model_state: Any
    rebuild: Static[Callable[[Any, Any], Any]]
    has_dropout: Static[bool] = False
    statistics: Static[Callable[[Any, Any, Any], Any] | None] = None


class NetworkOptions(TypedDict, total=False):
    """Options of `from_nnx`, `from_linen` and `from_equinox`.

    Attributes:
        batch_size: n; None takes all data in every iteration.
        weight_decay: precision of a Gaussian prior on every weight, BatchNorm's and biases included, in the convention of
            `potentials.to_bayesian`; 0 is a flat prior.
        log_prior: a log prior of another form, in place of `weight_decay`.
        coupling_includes_prior: whether the energies that couplings read include the prior. The thesis leaves it out: its
            partitions and corrections are those of losses.
        outputs: the outputs of the network, for a loss of your own: "logits" of classes along the last axis, "logit" of class 1
            (one output), or "values" of a regression or a rate. `iso.predictive.predict` needs it.
        dropout: "off" or "on" while sampling. Random masks make energies noisy and change the posterior. A module with dropout
            warns that it is off unless you pass this.
        compute_dtype: such as jnp.bfloat16, for mixed precision.
        prepare: maps stored inputs to the network's inputs, such as `iso.networks.Normalize(mean, std)` for uint8 images.
        augment: maps (key, (inputs, targets)) to the same, such as `iso.networks.cifar_augmentation()`.
        batching: "epochs", "independent" or "replacement".
        is_batch_shared: whether the chains of a run see the same batches.
        num_used: how many rows are in use, where the data have room to grow.
        is_streamed: whether the data stay on the host and only batches are transferred.
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
    """A decorator for functions with `NetworkOptions`: lists the options in their help, and refuses unknown ones."""
    return checked_call(NETWORK_DEFAULTS)(documented((NetworkOptions, NETWORK_DEFAULTS))(function))


def network_potential(
    network: Network, loss: str | Loss, data: Any, **given: Unpack[NetworkOptions]
) -> "NetworkPotential":
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
    dtypes = [getattr(leaf, "dtype", None) for leaf in jax.tree.leaves(data[0])]
    if options["prepare"] is None and np.uint8 in dtypes:
        message = "Inputs are bytes, from 0 to 255, and are not scaled. Pass prepare=iso.networks.Normalize(mean, std)."
        warnings.warn(message, stacklevel=4)
    dtype = options["compute_dtype"]
    if dtype is not None and not jnp.issubdtype(jnp.dtype(dtype), jnp.floating):
        refuse("compute_dtype", "a floating-point type", repr(dtype), "Give jnp.bfloat16, or None.")
    unchanged = ("batch_size", "batching", "is_batch_shared", "augment", "coupling_includes_prior", "num_used")
    potential = NetworkPotential(
        log_likelihood=network.apply,
        log_prior=log_prior if weight_decay == 0 else WeightDecay(weight_decay),
        data=tuple(data),
        model_state=network.model_state if jax.tree.leaves(network.model_state) else None,
        network=network,
        loss=as_loss(loss, options["outputs"]),
        has_dropout=check_choice("dropout", options["dropout"], ("off", "on")) == "on",
        compute_dtype=None if dtype is None else jnp.dtype(dtype).name,
        **{name: options[name] for name in (*unchanged, "is_streamed", "prepare")},
    )
    check_outputs(potential, stacklevel=4)
    return potential


@dataclasses.dataclass(frozen=True, eq=False)
class WeightDecay(Part):
    """The log density of a Gaussian prior of precision `precision` on every weight, without its constant."""

    precision: float

    def __call__(self, weights: Any) -> Array:
        """-precision / 2 * |weights|^2."""
        # One sum over one vector: on an accelerator, launching a sum for every leaf takes longer.
        leaves = [jnp.ravel(leaf).astype(jnp.result_type(float)) for leaf in jax.tree.leaves(weights)]
        return -0.5 * self.precision * jnp.sum(jnp.square(jnp.concatenate(leaves)))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class NetworkPotential(LikelihoodPotential):
    """U(w) = precision / 2 * |w|^2 + (N/n) * sum of losses: a network with a Gaussian prior on its weights.

    Attributes:
        network: the network.
        loss: maps (outputs, targets) to minus the log likelihood of every example.
        has_dropout: whether dropout is on while sampling, with masks from the run's seed.
        compute_dtype: precision of the forward pass; weights, statistics and the loss keep their own precision.
        prepare: maps stored inputs to the network's inputs, in training and prediction; None leaves them as they are.
    """

    function_name: ClassVar[str] = "loss"
    # BatchNorm does; losses are checked when the potential is built.
    may_mix_examples: ClassVar[bool] = True
    is_network: ClassVar[bool] = True  # pyright: ignore[reportIncompatibleVariableOverride]

    network: Network
    loss: Loss
    has_dropout: Static[bool] = False
    compute_dtype: Static[str | None] = None
    prepare: Callable[[Any], Any] | None = None

    @property
    def is_exact(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every iteration uses all data, without dropout."""
        return super().is_exact and not self.has_dropout

    @property
    def init(self) -> Any:
        """Where chains start: the module's weights, or a function of a key that draws them."""
        return self.network.init

    def on_device(self) -> Potential:
        # The initial weights are no part of the program.
        return super().on_device().replace_unchecked(network=self.network.replace_unchecked(init=None))

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        return words(key_own, iterations, 2) if self.has_dropout else ()

    def outputs(
        self, weights: Any, inputs: Any, model_state: Any = None, key: Array | None = None, is_training: bool = False
    ) -> Array:
        """Outputs of the network at `weights`, such as logits, in single precision.

        BatchNorm uses the statistics in `model_state`: pass those of the same draw. A `key` switches dropout on.
        """
        state = self.init_model_state() if model_state is None else model_state
        return self._forward(weights, state, inputs, is_training, key)[0]

    def batch_statistics(self, weights: Any, inputs: Any, model_state: Any) -> Any:
        """The model state after a training pass without dropout. Its BatchNorm statistics are those of `inputs` alone."""
        forward = self.network.statistics
        if forward is None:
            return self._forward(weights, model_state, inputs, True, None)[1]
        after = forward(*self._cast(weights, model_state, inputs))
        return jax.tree.map(lambda new, old: new.astype(old.dtype), after, model_state)

    @property
    def output_kind(self) -> str | None:
        """The kind of the outputs: "logits" of classes, one "logit", or "values"; None for a custom loss without `outputs`."""
        return output_kind(self.loss)

    def diagnose(self, run: RunView) -> list[Check]:
        precision = self.log_prior.precision if isinstance(self.log_prior, WeightDecay) else None
        return diagnosis.diagnose(self, precision, run)

    @property
    def loss_without_inputs(self) -> float | None:
        """The lowest loss over all examples of a constant prediction; None where it is not known."""
        return None if self.is_streamed or self.num_used is not None else constant_loss(self.loss, self.data[1])

    def module(self, weights: Any, model_state: Any = None) -> Any:
        """The module of the original library at `weights`."""
        return self.network.rebuild(weights, self.init_model_state() if model_state is None else model_state)

    def _log_likelihoods(self, position: Any, batch: Batch, noise: Any, model_state: Any) -> tuple[Array, Any]:
        inputs, targets = batch.examples
        is_masked = self.has_dropout and noise is not None
        key = jax.random.wrap_key_data(jnp.asarray(noise), impl="threefry2x32") if is_masked else None
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
        """Weights, state and prepared inputs, in the precision of the forward pass."""
        if self.prepare is not None:
            inputs = call_traced("prepare", "a function of the inputs of a batch", self.prepare, inputs)
        if self.compute_dtype is not None:
            weights, inputs = _cast(weights, self.compute_dtype), _cast(inputs, self.compute_dtype)
        return weights, model_state, inputs


def _shapes(tree: Any) -> str:
    return "shape " + ", ".join(str(np.shape(leaf)) for leaf in jax.tree.leaves(tree))


def _cast(tree: Any, dtype: str) -> Any:
    """Floating-point leaves in another precision; others, such as token numbers, as they are."""
    is_real = lambda leaf: jnp.issubdtype(leaf.dtype, jnp.floating)  # noqa: E731
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if is_real(leaf) else leaf, tree)
