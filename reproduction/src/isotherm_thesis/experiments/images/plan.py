"""What a method is at a setting: a sampler with its number of chains, its length, and which of its networks are averaged."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from isotherm.foundation.errors import refuse
from isotherm.samplers.sampler import AnySampler

THESIS_IMAGES = 50_000


@dataclasses.dataclass(frozen=True)
class Frame:
    """What of a setting a method's schedules depend on.

    Attributes:
        num_data: N.
        steps_per_epoch: iterations of an epoch.
        scale: the fraction of the thesis' epochs.
        data_set: of the images.
    """

    num_data: int
    steps_per_epoch: int
    scale: float
    data_set: str

    def step_size(self, learning_rate: float) -> float:
        """The step size of a learning rate for mean losses: 0.1 is 2e-6 for 50,000 images."""
        return learning_rate / self.num_data

    def energy(self, value: float) -> float:
        """An energy that the thesis gives for 50,000 images; that of mean losses stays the same."""
        return value * self.num_data / THESIS_IMAGES

    def epochs(self, thesis_epochs: float) -> int:
        """A number of epochs between two events, in iterations, at least one epoch."""
        return max(round(self.scale * thesis_epochs), 1) * self.steps_per_epoch

    def clock(self, thesis_epochs: int, divisor: int = 1) -> "Clock":
        """The length of a method that the thesis ran for so many epochs; a multiple of `divisor`, the number of its cycles."""
        per_part = max(round(self.scale * thesis_epochs / divisor), 1)
        return Clock(self.steps_per_epoch, per_part * divisor, thesis_epochs)


@dataclasses.dataclass(frozen=True)
class Clock:
    """Epochs of the thesis in iterations of a run that is shorter.

    Attributes:
        steps_per_epoch: iterations of an epoch.
        num_epochs: of the run.
        thesis_epochs: of the thesis' run.
    """

    steps_per_epoch: int
    num_epochs: int
    thesis_epochs: int

    @property
    def num_steps(self) -> int:
        """Iterations of the run."""
        return self.num_epochs * self.steps_per_epoch

    def at(self, thesis_epoch: float) -> int:
        """The iteration that stands for an epoch of the thesis: as far into the run."""
        return round(self.num_steps * thesis_epoch / self.thesis_epochs)

    def rate(self, thesis_rate: float) -> float:
        """What a factor per epoch of the thesis is per epoch of the run, so that the whole run changes by as much."""
        return thesis_rate ** (self.thesis_epochs / self.num_epochs)


@dataclasses.dataclass(frozen=True)
class Swag:
    """Networks that are drawn from Gaussians fitted to the path of every cycle.

    Attributes:
        cycle_length: iterations of a cycle.
        num_drawn: networks from each.
        rank: of the Gaussians.
    """

    cycle_length: int
    num_drawn: int = 10
    rank: int = 20


@dataclasses.dataclass(frozen=True)
class Plan:
    """A method at a setting.

    Attributes:
        sampler: how.
        clock: how long.
        num_chains: of the run; None is what the sampler needs.
        average_from: the iteration from which networks are averaged.
        thinning: iterations between two of them.
        starts_apart: whether chains start from weights of their own, or all from the same.
        records_all: whether networks are kept from the first epoch on, for what is recorded with them.
        pretraining: a plan whose last networks are the starts, and are averaged too; None starts from random weights.
        pretrained_weight: of a pretrained network in the average.
        swag: how networks are drawn, where the path itself is not averaged.
        learns_from: the iteration from which a contour learns.
    """

    sampler: AnySampler
    clock: Clock
    num_chains: int | None
    average_from: int
    thinning: int
    starts_apart: bool = True
    records_all: bool = False
    pretraining: "Plan | None" = None
    pretrained_weight: float = 10.0
    swag: Swag | None = None
    learns_from: int = 0

    @property
    def chains(self) -> int:
        """The number of chains."""
        return self.sampler.choose_num_chains(self.num_chains)

    @property
    def first_averaged(self) -> int:
        """The iteration from which networks are averaged; however short the run, its last one is."""
        return min(self.average_from, self.clock.num_steps - 1)

    @property
    def first_record(self) -> int:
        """The first iteration that may be recorded, so that the last of the run is recorded too."""
        last = self.clock.num_steps - 1
        wanted = 0 if self.records_all else self.first_averaged
        return last - (last - wanted) // self.thinning * self.thinning


@dataclasses.dataclass(frozen=True)
class Arm:
    """A method under a label of a table.

    Attributes:
        make: a function of `Frame` and of named numbers that gives a `Plan`.
        knobs: those of the numbers that differ from its defaults.
        changes: fields of the setting that are other ones for this method.
        parts: parts of the average that are judged as well, by name: functions that take the weights of all networks, (P, S), to
            those of the part, which need not sum to one.
    """

    make: Callable[..., Plan]
    knobs: dict[str, Any] = dataclasses.field(default_factory=dict)
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)
    parts: dict[str, Callable[[np.ndarray], np.ndarray]] = dataclasses.field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """The numbers that may be set."""
        return tuple(name for name in inspect.signature(self.make).parameters if name != "frame")

    def plan(self, frame: Frame, **others: Any) -> Plan:
        """The method at a setting."""
        unknown = sorted(set(others) - set(self.names()))
        if unknown:
            refuse("set", f"one of {', '.join(self.names())}", ", ".join(unknown), "Choose a number of this method.")
        return self.make(frame, **{**self.knobs, **others})
