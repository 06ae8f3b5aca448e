"""Samplers, made of four independent parts, and specifications, samplers whose coupling pilot runs complete."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import numpy as np

from isotherm.contour import PartitionSearch
from isotherm.coupling import Coupling, Independent
from isotherm.engine.iteration import Parts
from isotherm.estimators import Estimator, Plain
from isotherm.exchange import LadderSearch
from isotherm.foundation.errors import check_integer, refuse, short
from isotherm.foundation.parts import Part, Static, as_arguments
from isotherm.foundation.schedules import CollectionWindow, Schedule, check_schedule
from isotherm.foundation.short_text import short_text
from isotherm.kernels.ghmc import MALA
from isotherm.kernels.kernel import Kernel
from isotherm.kernels.wrapped import Within, WrappedKernel, innermost_kernel, scaled
from isotherm.potentials.energy import EnergyPotential
from isotherm.potentials.potential import Potential
from isotherm.potentials.reference import check_reference
from isotherm.samplers.loop import Info, LoopState, start, step


@dataclasses.dataclass(frozen=True, eq=False)
class Sampler(Part):
    """A composition of the four parts; see the constructors in `isotherm.samplers`.

    Attributes:
        kernel: moves one chain.
        step_size: epsilon, a number or a function of the iteration. An array, or a tree like the position, holds one for every
            coordinate; it becomes a number and the scales of a `kernels.wrapped.Scaled` kernel.
        temperature: tau, a number or a function of the iteration.
        estimator: computes energies and gradients.
        coupling: connects chains.
        window: the iterations whose draws are collected; None collects all.
        name: for tables and messages.

    Example:
        >>> import isotherm as iso, jax, jax.numpy as jnp
        >>> sampler = iso.sgld(step_size=0.1)
        >>> state = sampler.init(lambda x: 0.5 * (x ** 2).sum(), jnp.zeros(2), num_chains=3)
        >>> state, info = sampler.step(jax.random.key(0), state)
        >>> state.position.shape, info.energy.shape
        ((3, 2), (3,))
    """

    kernel: Kernel
    step_size: Schedule
    temperature: Schedule = 1.0
    estimator: Estimator = dataclasses.field(default_factory=Plain)
    coupling: Coupling = dataclasses.field(default_factory=Independent)
    window: Static[CollectionWindow | None] = None
    name: Static[str] = ""

    def __post_init__(self):
        if not callable(self.step_size) and (isinstance(self.step_size, dict) or np.ndim(self.step_size) > 0):
            step_size, factor = _split(self.step_size)
            object.__setattr__(self, "step_size", step_size)
            object.__setattr__(self, "kernel", scaled(self.kernel, factor))
        check_schedule("step_size", self.step_size, allow_zero=callable(self.step_size))
        check_schedule("temperature", self.temperature, allow_zero=not self.kernel.is_adjusted)

    def short_repr(self, depth: int) -> str:
        shown: dict[str, Any] = {"step_size": self.step_size, "temperature": self.temperature, "kernel": self.kernel}
        ladder = getattr(self.coupling, "ladder", None)
        shown |= {} if ladder is None else {"ladder": ladder}
        if not self.name:
            shown |= {"estimator": self.estimator, "coupling": self.coupling}
        texts = {name: short_text(value, depth + 1) for name, value in shown.items()}
        # The name of the sampler implies a kernel without settings.
        kept = [f"{name}={text}" for name, text in texts.items() if not (self.name and text.endswith("()"))]
        return f"{self.name or 'Sampler'}({', '.join(kept)})"

    def parts(self, potential: Potential, chain_mode: str, dtype: Any) -> Parts:
        """The parts with a potential, as arguments of a program: numbers in one type."""
        own = Parts(potential, self.kernel, self.estimator, self.coupling, self.step_size, self.temperature, chain_mode)
        return as_arguments(own, dtype)

    def check(self, potential: Potential, position: Any) -> None:
        """Refuse, before any work, a potential or starts, leaves (run, chain, ...), that a part cannot use."""
        self.coupling.check(potential)
        self.estimator.check(potential)
        self.kernel.check(position)
        if self.kernel.is_adjusted:
            self._check_exact(potential)
        if self.coupling.traits.is_path and potential.has_reference:
            check_reference(potential, position)
            self._check_path()
        if potential.space is not None and self._has_box:
            remedy = "It would apply to unconstrained values: use `transforms.interval(low, high)` for the parameter."
            refuse("box", "left out for constrained parameters", "a box", remedy)

    def _check_exact(self, potential: Potential) -> None:
        """Refuse what a Metropolis test cannot use."""
        kernel = "SGLD" if isinstance(innermost_kernel(self.kernel), MALA) else "SGHMC"
        if not potential.is_exact or potential.is_streamed:
            rule = f"an exact energy for {self.name or 'an adjusted kernel'}, whose Metropolis test needs one"
            got = "one with data that stream" if potential.is_streamed else "one with mini-batches or noise"
            other = {"mala": "iso.sgld", "ghmc": "iso.sghmc", "reghmc": "iso.resghmc"}.get(
                self.name, f"kernels.{kernel}"
            )
            refuse("potential", rule, got, f"Use `{other}`, or all data in every iteration (`batch_size=None`).")
        if self.coupling.log_weights is not None:
            rule = "one that flattens nothing, for an adjusted kernel"
            refuse("coupling", rule, type(self.coupling).__name__, f"Use `kernels.{kernel}`.")
        if not isinstance(self.estimator, Plain):
            rule = "`Plain` for an adjusted kernel, whose energies are exact"
            refuse("estimator", rule, type(self.estimator).__name__, "Leave it out.")

    def _check_path(self) -> None:
        """Refuse what a rung that is drawn from the reference cannot use."""
        ladder = getattr(self.coupling, "ladder", None)
        if ladder is None or not np.isinf(ladder.temperatures[-1]):
            return
        if self.temperature != 1.0:
            got = "a schedule" if callable(self.temperature) else f"{float(self.temperature):g}"
            remedy = "Divide the energy by the temperature instead."
            refuse(
                "temperatures",
                "(1.0, ..., infinity) for draws from a reference, with `temperature_factor=1.0`",
                got,
                remedy,
            )
        if self._has_box:
            remedy = "Give the potential an infinite energy outside, or use `transforms.interval(low, high)` for a parameter."
            refuse("box", "left out for draws from a reference, which would leave it", "a box", remedy)

    def choose_num_chains(self, asked: int | None) -> int:
        """The number of chains in a run: `asked`, or that of the coupling, or 1."""
        needed = self.coupling.traits.num_chains
        if asked is not None and needed is not None and asked != needed:
            remedy = "Every rung needs one replica; leave it out. For several ladders give `num_ladders`."
            refuse("num_chains", f"the number of rungs, {needed}", asked, remedy)
        number = (needed or 1) if asked is None else asked
        return check_integer("num_chains", number, 1, "Give the number of chains in a run.")

    @property
    def _has_box(self) -> bool:
        kernel = self.kernel
        while isinstance(kernel, WrappedKernel) and not isinstance(kernel, Within):
            kernel = kernel.inner
        return isinstance(kernel, Within)

    def has_ladder(self, num_chains: int) -> bool:
        """Whether only the chain on the target rung is recorded."""
        coupling = self.coupling
        if coupling.traits.num_chains is None:
            return False
        return jax.eval_shape(lambda: coupling.observe(coupling.init(num_chains))).recorded is not None

    def init(self, potential: Any, position: Any, num_chains: int | None = None) -> LoopState:
        """The state of a loop by hand: `num_chains` chains that start at `position`, or at `iso.per_chain(positions)`.

        Use `init` and `step` for a loop of your own; `iso.sample` adds records, checkpoints and pilots.
        """
        return start(self, as_potential(potential), position, num_chains)

    def step(self, key: Any, state: LoopState, data: Any = None) -> tuple[LoopState, Info]:
        """One iteration of `iso.sample`, with the periodic work of estimators and couplings.

        An eager call runs the compiled block of `iso.sample`, with the same bytes. Inside `jax.jit` or `jax.lax.scan` rungs,
        batches and bins are the same, and positions agree to rounding.

        Args:
            key: the key of the run, the same in every step: randomness is a function of it and of the state's iteration.
            state: from `init` or the last step.
            data: the examples of this step, common to the chains; a tuple of batches for a sampler that needs several. None takes
                the batches of the potential.
        """
        return step(self, key, state, data)


def _split(step_sizes: Any) -> tuple[float, Any]:
    """The geometric mean of step sizes of coordinates, and the roots of their ratios to it."""
    try:
        arrays = jax.tree.map(lambda leaf: np.asarray(leaf, float), step_sizes)
    except (TypeError, ValueError):
        arrays = ()
    flat = [np.ravel(leaf) for leaf in jax.tree.leaves(arrays)]
    numbers = np.concatenate(flat) if flat else np.zeros(1)
    if not (numbers.size and np.all(np.isfinite(numbers)) and np.all(numbers > 0)):
        rule = "a number above 0, or an array or a tree of them like the position"
        refuse("step_size", rule, short(step_sizes), "Write `step_size=jnp.array([0.1, 10.0])`, say.")
    mean = float(np.exp(np.mean(np.log(numbers))))
    return mean, jax.tree.map(lambda leaf: np.sqrt(leaf / mean).astype(np.float32), arrays)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A setting from pilot runs.

    Attributes:
        name: of the setting, such as "ladder".
        value: in types that JSON can hold; enough to build the setting again.
        reason: why, in words.
    """

    name: str
    value: dict[str, Any]
    reason: str


@dataclasses.dataclass(frozen=True, eq=False)
class FoundStep:
    """Step sizes and scales from pilot runs.

    Attributes:
        step_sizes: of the rungs of a ladder with a Metropolis test; else one number.
        factor: the scales, in whose coordinates the steps are: a tree like the position, or a matrix.
        is_dense: whether the scales are a matrix.
    """

    step_sizes: tuple[float, ...]
    factor: Any
    is_dense: bool = False


@dataclasses.dataclass(frozen=True)
class StepSearch:
    """A step size, and the scales of coordinates, found by pilot runs: `step_size="auto"`."""

    name = "step_size"

    def example(self, plain: Any) -> FoundStep:
        """A step size to check options on."""
        return FoundStep((1.0,), None)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Specification:
    """A sampler with `step_size="auto"`, `ladder="auto"` or `partition="auto"`, or several of them.

    `iso.sample` and its kin resolve it; `iso.resolve` does so by hand.

    Attributes:
        plain: what is known. For a ladder or a partition, independent chains with the kernel, step size and temperature of the
            target; for a step size, the sampler or specification with an example of it.
        search: settings of the pilot runs.
        complete: makes a sampler of `plain` and their result, or a specification where more is unknown.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> specification = iso.resgld(0.02, ladder="auto")
        >>> resolved = iso.resolve(lambda x: x @ x, specification, init=jnp.zeros(2))  # doctest: +SKIP
        >>> resolved.sampler.coupling.ladder.temperatures  # doctest: +SKIP
    """

    plain: Any  # A Sampler, or a Specification.
    search: LadderSearch | PartitionSearch | StepSearch
    complete: Callable[[Any, Any], Any]

    def __post_init__(self):
        # Refuse options that are wrong for any ladder or partition.
        self.example()

    def __repr__(self) -> str:
        plain = repr(self.plain)
        if isinstance(self.search, StepSearch):
            return re.sub(r"step_size=[^,)]*", 'step_size="auto"', plain, count=1)
        return f"{plain[:-1]}, {self.search.name}={self.search!r})"

    @property
    def name(self) -> str:
        """The name for tables and messages."""
        return self.plain.name

    @property
    def coupling(self) -> NoReturn:
        """Refused: unknown before pilot runs."""
        self.refuse()

    @property
    def kernel(self) -> Kernel:
        """Moves one chain."""
        return self.plain.kernel

    @property
    def step_size(self) -> Schedule:
        """The step size of the target."""
        return self.plain.step_size

    @property
    def temperature(self) -> Schedule:
        """The temperature of the target."""
        return self.plain.temperature

    @property
    def window(self) -> CollectionWindow | None:
        """The iterations whose draws are collected."""
        return self.plain.window

    def completed(self, found: Any) -> "Sampler | Specification":
        """The sampler with what pilots found; a specification where more is unknown."""
        return self.complete(self.plain, found)

    def example(self) -> Sampler:
        """The sampler with examples of what is unknown, on which options can be checked."""
        completed = self.completed(self.search.example(self.plain))
        return completed.example() if isinstance(completed, Specification) else completed

    def check(self, potential: Potential, position: Any) -> None:
        """Refuse, before any work, a potential or starts that the sampler cannot use."""
        self.example().check(potential, position)

    def choose_num_chains(self, asked: int | None) -> int:
        """The number of chains in a run: `asked`, or 1; it must be left out for a ladder, whose number of rungs is unknown."""
        if asked is not None and isinstance(self.search, LadderSearch):
            remedy = "A pilot finds the number of rungs, with one replica each. For several ladders give `num_ladders`."
            refuse("num_chains", "left out where a pilot finds the ladder", asked, remedy)
        return self.plain.choose_num_chains(asked)

    def has_ladder(self, num_chains: int) -> bool:
        """Whether only the chain on the target rung is recorded."""
        return isinstance(self.search, LadderSearch) or self.plain.has_ladder(num_chains)

    def init(self, potential: Any, position: Any, num_chains: int | None = None) -> NoReturn:
        """Refused: a loop by hand needs a complete sampler, from `iso.resolve`."""
        self.refuse()

    def step(self, key: Any, state: Any, data: Any = None) -> NoReturn:
        """Refused likewise."""
        self.refuse()

    def refuse(self) -> NoReturn:
        """Refuse a specification where no pilot can run."""
        remedy = f"Run the pilot: `sampler = iso.resolve(potential, iso.{self.name}(...), init=start).sampler`."
        refuse(self.search.name, "known", "a search that needs a pilot", remedy)


AnySampler = Sampler | Specification


def resolved(sampler: AnySampler) -> Sampler:
    """The sampler; a specification is refused."""
    return sampler.refuse() if isinstance(sampler, Specification) else sampler


def check_sampler(value: Any) -> AnySampler:
    """Return a sampler or a specification, or refuse the value; for a constructor, the remedy is its call."""
    if isinstance(value, (Sampler, Specification)):
        return value
    name = getattr(value, "__name__", "")
    if callable(value) and name:
        refuse("sampler", "a sampler", f"the function {name}", f"Call it: `iso.{name}(step_size)`.")
    return refuse("sampler", "a sampler", short(value), "Pass `iso.sgld(0.01)`, say.")


def as_potential(value: Any) -> Potential:
    """A potential, from a potential or an energy function."""
    if isinstance(value, Potential):
        return value
    if isinstance(value, (Sampler, Specification)):
        remedy = "The potential comes first: iso.sample(energy, iso.sgld(0.01), ...)."
        refuse("potential", "a potential or an energy function", f"the sampler {short(value)}", remedy)
    if not callable(value):
        refuse("potential", "a potential or an energy function", short(value), "Use `iso.from_energy`, say.")
    energy: Any = value
    return EnergyPotential(energy)
