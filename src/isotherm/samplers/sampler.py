"""A sampler is a choice of four independent parts: kernel, estimator, coupling and schedules."""

import dataclasses
from typing import Any

from isotherm.coupling import Coupling, Independent
from isotherm.engine.iteration import Parts
from isotherm.estimators.estimator import Estimator
from isotherm.estimators.plain import Plain
from isotherm.exchange.ladder import PilotLadder
from isotherm.foundation.errors import check_integer, refuse, short
from isotherm.foundation.parts import Part, Static, as_arguments
from isotherm.foundation.schedules import CollectionWindow, Schedule, check_schedule
from isotherm.foundation.short_text import short_text
from isotherm.kernels.kernel import Kernel, WrappedKernel
from isotherm.kernels.within import Within
from isotherm.potentials.energy import EnergyPotential
from isotherm.potentials.potential import Potential
from isotherm.samplers.loop import Info, LoopState, start, step


@dataclasses.dataclass(frozen=True, eq=False)
class Sampler(Part):
    """A composition of the four parts. The constructors in `isotherm.samplers` are one line each.

    Attributes:
        kernel: moves one chain.
        step_size: epsilon, a number or a function of the iteration.
        temperature: tau, a number or a function of the iteration.
        estimator: gives energies and gradients.
        coupling: lets chains act on one another.
        window: the iterations whose draws are collected; None collects all.
        name: what tables call this sampler.

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
        check_schedule("step_size", self.step_size, allow_zero=callable(self.step_size))
        check_schedule("temperature", self.temperature, allow_zero=True)

    def text_at(self, depth: int) -> str:
        shown = {"step_size": self.step_size, "temperature": self.temperature, "kernel": self.kernel}
        if hasattr(self.coupling, "ladder"):
            shown["ladder"] = getattr(self.coupling, "ladder")  # noqa: B009
        if not self.name:
            shown |= {"estimator": self.estimator, "coupling": self.coupling}
        texts = {name: short_text(value, depth + 1) for name, value in shown.items()}
        # A kernel without settings is known by the name of the sampler.
        said = [f"{name}={text}" for name, text in texts.items() if not (self.name and text.endswith("()"))]
        return f"{self.name or 'Sampler'}({', '.join(said)})"

    def parts(self, potential: Potential, chain_mode: str, dtype: Any) -> Parts:
        """The parts bound to a potential, as arguments of a program: numbers in one type."""
        own = Parts(potential, self.kernel, self.estimator, self.coupling, self.step_size, self.temperature, chain_mode)
        return as_arguments(own, dtype)

    def check(self, potential: Potential, position: Any) -> None:
        """Refuse, before any work, a potential or starts, leaves (run, chain, ...), that one of the parts cannot use."""
        self.coupling.check(potential)
        self.estimator.check(potential)
        self.kernel.check(position)
        if potential.space is not None and self._has_box:
            remedy = "The box would hold the unconstrained numbers: use `transforms.interval(low, high)` for the parameter instead."
            refuse("box", "left out for constrained parameters", "a box", remedy)

    def choose_num_chains(self, asked: int | None) -> int:
        """The number of chains in a run: what was asked for, unless the coupling needs another."""
        if asked is not None and self.has_open_ladder:
            remedy = "A pilot finds the number of rungs, each of which has one replica. Independent ladders are `num_ladders`."
            refuse("num_chains", "left out where a pilot finds the ladder", asked, remedy)
        needed = self.coupling.needs.num_chains
        if asked is not None and needed is not None and asked != needed:
            remedy = "Every rung needs one replica; leave it out. Independent ladders are `num_ladders`."
            refuse("num_chains", f"the number of rungs, {needed}", asked, remedy)
        return check_integer(
            "num_chains", (needed or 1) if asked is None else asked, 1, "Give the number of chains in a run."
        )

    @property
    def _has_box(self) -> bool:
        kernel = self.kernel
        while isinstance(kernel, WrappedKernel) and not isinstance(kernel, Within):
            kernel = kernel.inner
        return isinstance(kernel, Within)

    @property
    def has_open_ladder(self) -> bool:
        """Whether a pilot has to find the rungs first."""
        return isinstance(getattr(self.coupling, "ladder", None), PilotLadder)

    def refuse_open_ladder(self) -> None:
        """Refuse a ladder that a pilot has to find, where none is run."""
        if self.has_open_ladder:
            remedy = (
                "`iso.sample` runs a pilot; `iso.advise(...).found.ladder` gives its temperatures, to be passed here."
            )
            refuse("ladder", "known", "one that a pilot has to find", remedy)

    def init(self, potential: Any, position: Any, num_chains: int | None = None) -> LoopState:
        """The state of a loop written by hand: `num_chains` chains that start at `position`, or at `iso.per_chain(positions)`.

        `iso.sample` adds records, checkpoints and pilots. Use the pair `init` and `step` where the loop must be your own.
        """
        self.refuse_open_ladder()
        return start(self, as_potential(potential), position, num_chains)

    def step(self, key: Any, state: LoopState, data: Any = None) -> tuple[LoopState, Info]:
        """One iteration, with all that `iso.sample` does in it: the periodic work of estimators and couplings included.

        Called eagerly it runs the compiled block of `iso.sample`, and gives the same bytes. Inside `jax.jit` or `jax.lax.scan`
        rungs, batches and bins are the same, and positions agree to rounding.

        Args:
            key: the key of the run, the same in every step: what is random is a function of it and of the state's iteration.
            state: from `init` or the last step.
            data: the examples of this step, common to the chains; for a sampler that needs several batches, a tuple of them. None
                takes the batches of the potential.
        """
        return step(self, key, state, data)


def check_sampler(value: Any) -> Sampler:
    """Refuse what is no sampler; a constructor that was not called is told so."""
    if isinstance(value, Sampler):
        return value
    name = getattr(value, "__name__", "")
    if callable(value) and name:
        refuse("sampler", "a sampler", f"the function {name}", f"Call it: `iso.{name}(step_size)`.")
    return refuse("sampler", "a sampler", short(value), "Pass `iso.sgld(0.01)`, say.")


def as_potential(value: Any) -> Potential:
    """A potential, from a potential or an energy function."""
    if isinstance(value, Potential):
        return value
    if isinstance(value, Sampler):
        remedy = "The potential comes first: iso.sample(energy, iso.sgld(0.01), ...)."
        refuse("potential", "a potential or an energy function", f"the sampler {short(value)}", remedy)
    if not callable(value):
        refuse("potential", "a potential or an energy function", short(value), "Use `iso.from_energy` and its kin.")
    energy: Any = value
    return EnergyPotential(energy)
