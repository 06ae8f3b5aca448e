"""Checks on a run, and the table of all checks with their thresholds.

`diagnostics`, couplings, kernels and potentials return findings made by an entry of the table. Custom couplings, kernels and
potentials return theirs from `diagnose(run)`.
"""

import dataclasses
import enum
from typing import Any, Protocol


class Severity(enum.StrEnum):
    """How bad a finding is."""

    FAULT = "fault"  # Results are wrong.
    DOUBT = "doubt"  # Results may be wrong, or cannot be checked.
    REMARK = "remark"  # Worth knowing.


@dataclasses.dataclass(frozen=True)
class Check:
    """A finding about a run; `str(check)` is its message and its remedy.

    Attributes:
        name: the identifier, such as "swap-noise".
        looks_at: the subject of the check.
        severity: how bad the finding is.
        message: the finding, in a sentence.
        remedy: what to do about it, or empty.
        numbers: the measured values.
        threshold: the number above or below which the check fires, if there is one.
        affects_estimates: whether the finding limits every estimate.

    Example:
        >>> print(DIVERGED.found("2 of 4 chains diverged.", "Lower `step_size`, or use a `box`.", number=2))
        2 of 4 chains diverged. Lower `step_size`, or use a `box`.
    """

    name: str
    looks_at: str
    severity: Severity
    message: str
    remedy: str = ""
    numbers: dict[str, float] = dataclasses.field(default_factory=dict)
    threshold: float | None = None
    affects_estimates: bool = False

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()

    def as_json(self) -> dict[str, Any]:
        """The check in types that JSON can hold."""
        return dataclasses.asdict(self) | {"numbers": {name: float(value) for name, value in self.numbers.items()}}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Check":
        """A check from its `as_json`."""
        return cls(**{**stored, "severity": Severity(stored["severity"])})


class RunView(Protocol):
    """The part of `isotherm.Run` that `diagnose` may use."""

    draws: Any
    log_weights: Any
    energies: Any
    times: Any
    stats: dict[str, Any]
    observed: dict[str, Any]
    config: dict[str, Any]
    num_steps: int

    @property
    def bias(self) -> Any: ...

    @property
    def claims_distribution(self) -> bool: ...


@dataclasses.dataclass(frozen=True)
class StoredChecks:
    """Checks of the parts of a stored run, made when the run ended."""

    checks: tuple[Check, ...]

    def diagnose(self, run: Any) -> list[Check]:
        """The stored checks."""
        return list(self.checks)


@dataclasses.dataclass(frozen=True, eq=False)
class CheckedParts:
    """The parts of a run that check it: coupling, kernel and potential."""

    parts: tuple[Any, ...]

    def diagnose(self, run: RunView) -> list[Check]:
        """The checks of all parts."""
        return [check for part in self.parts for check in part.diagnose(run)]


@dataclasses.dataclass(frozen=True)
class Kind:
    """An entry of the table."""

    name: str
    looks_at: str
    severity: Severity
    threshold: float | None = None
    affects_estimates: bool = False

    def found(self, message: str, remedy: str = "", **numbers: Any) -> Check:
        """A check with a finding."""
        values = {name: float(value) for name, value in numbers.items()}
        return Check(
            self.name, self.looks_at, self.severity, message, remedy, values, self.threshold, self.affects_estimates
        )

    @property
    def limit(self) -> float:
        """The threshold, which the kind must have."""
        assert self.threshold is not None
        return self.threshold


_FAULT, _DOUBT, _REMARK = Severity

# The run as a whole.
STOPPED = Kind("stopped", "whether the run reached its last iteration", _REMARK)
IMPRECISE = Kind("imprecise", "whether the run has the effective draws wanted", _DOUBT)
UNFINISHED = Kind("unfinished", "whether the run has ended", _REMARK)
OLD_FORMAT = Kind("old-format", "the format of a run's folder", _REMARK)
DIVERGED = Kind("diverged", "chains whose energy became infinite or NaN", _FAULT)
RESTARTED = Kind("restarted", "chains that were put back to their start", _FAULT)
ALL_DIVERGED = Kind("all-diverged", "whether any chain survived", _FAULT)
ONE_CHAIN = Kind("one-chain", "the number of chains", _DOUBT)
ONE_START = Kind("one-start", "whether chains started apart", _DOUBT)
# Spread of the starts over that of the draws.
CLOSE_STARTS = Kind("close-starts", "spread of the starts beside that of the draws", _DOUBT, 1 / 3)
# Effective draws as a share of all.
FEW_WEIGHTS = Kind("few-weights", "effective number of draws by their weights", _DOUBT, 0.1)

# The distribution of the draws.
TEMPERATURE = Kind("temperature", "whether draws share one temperature", _FAULT, affects_estimates=True)
PRECONDITIONER = Kind("preconditioner", "whether the preconditioner adapts while draws are taken", _FAULT, None, True)
# Share of proposals; iterations in which a chain would have moved many times.
LOW_ACCEPTANCE = Kind("low-acceptance", "accepted proposals of each chain or rung", _DOUBT, 0.1)
STUCK_CHAINS = Kind("stuck-chains", "chains that reject every proposal", _FAULT, affects_estimates=True)
# Variance between cycles over that within.
CYCLES = Kind("cycles", "whether cycles mix", _FAULT, 1.5, True)
PARTICLES = Kind("particles", "wells in which particles lie", _FAULT, 1.0, True)
# Spacing of stored positions over the noise of a move; of energies over the temperature.
POSITION_ROUNDING = Kind("position-rounding", "precision of positions", _FAULT, 0.3, True)
ENERGY_ROUNDING = Kind("energy-rounding", "precision of energies", _FAULT, 0.05, True)

# Replica exchange.
IDLE_PAIRS = Kind("idle-pairs", "pairs of rungs that never swap", _DOUBT, affects_estimates=True)
NO_ROUND_TRIPS = Kind("no-round-trips", "round trips of replicas", _DOUBT, affects_estimates=True)
# Nats that noise adds to the mean swap probability, and by which that differs between positions.
SWAP_NOISE = Kind("swap-noise", "energy noise that swaps do not correct", _FAULT, 0.1, True)
UNEVEN_NOISE = Kind("uneven-noise", "energy noise that depends on the position", _FAULT, 0.1, True)
# Variance of a swap's exponent over the number of examples.
SWAP_BATCH = Kind("swap-batch", "noise of swaps per example of a batch", _FAULT, 0.25, True)
# Below this many batches, the noise of a swap is correlated with that of the last.
SHORT_EPOCHS = Kind("short-epochs", "batches per epoch", _DOUBT, 20.0, True)
IGNORED_PRIOR = Kind("ignored-prior", "the energy that swaps read", _FAULT, affects_estimates=True)
# Swaps that a pair would have accepted while it rests; expected swaps of a pair in a window.
COOLING = Kind("cooling", "rests of pairs after a swap", _FAULT, 0.02, True)
GATE = Kind("gate", "swaps of a pair within a window", _FAULT, 0.5, True)
# Share of a well that a step on a hot rung crosses.
HOT_STEP = Kind("hot-step", "step sizes of hot rungs", _FAULT, 0.6, True)
FEW_TOURS = Kind("few-tours", "round trips of each ladder", _DOUBT, 10.0, True)
# Share of the variance between tours that replicas explain.
STUCK_REPLICAS = Kind("stuck-replicas", "whether replicas forget their start at the hottest rung", _FAULT, 0.3, True)
REFERENCE = Kind("reference", "whether the density of a path's reference is that of its draws, and normalized", _FAULT)
# Mean probability of a swap between neighboring rungs, from the energies of both.
RUNG_OVERLAP = Kind("rung-overlap", "overlap of the energies of neighboring rungs", _DOUBT, 0.02)

# Contours.
FLAT_MULTIPLIER = Kind("flat-multiplier", "range of the multiplier", _DOUBT, 1e-3, True)
BOUNDED_MULTIPLIER = Kind("bounded-multiplier", "iterations with the multiplier at its bound", _DOUBT, 0.05, True)
TOP_BIN = Kind("top-bin", "energies in the open top bin", _DOUBT, 0.2, True)
FIRST_BIN = Kind("first-bin", "draws in the open first bin", _DOUBT, 0.9, True)
UNSETTLED_THETA = Kind("unsettled-theta", "drift of the log weights over their spread", _FAULT, 0.5, True)
RUNAWAY_THETA = Kind("runaway-theta", "theta in the top bin", _FAULT, 0.9, True)
# Error of log weights after the correction for noise; noise times slope, if that is unknown.
WEIGHT_NOISE = Kind("weight-noise", "error of the log weights from energy noise", _FAULT, 0.05, True)
WEIGHT_BLUR = Kind("weight-blur", "energy noise times the slope of the log weights", _FAULT, 0.3, True)

# Networks.
NO_PRIOR = Kind("no-prior", "prior of the weights", _DOUBT)
WEAK_PRIOR = Kind("weak-prior", "precision of the prior", _DOUBT, 0.01)
# Loss over that of the best constant prediction.
UNTRAINED = Kind("untrained", "loss beside that of a constant prediction", _FAULT, 0.98)

# Bias by the step size and by gradient noise: of means in standard deviations, of variances relative to themselves.
BIASED_MEAN = Kind("biased-mean", "bias of means", _FAULT, 0.05)
BIASED_SPREAD = Kind("biased-spread", "bias of variances", _FAULT, 0.05)
# Relative error of the temperature of a coordinate; excess and deficit of that of the whole position.
WRONG_HEAT = Kind("wrong-heat", "temperature of each coordinate", _FAULT, 0.25)
HOT_DRAWS = Kind("hot-draws", "temperature of the draws", _FAULT, 0.03)
COLD_DRAWS = Kind("cold-draws", "temperature of the draws", _FAULT, 0.1)
# Share of a well that a step crosses.
STIFF_WELLS = Kind("stiff-wells", "step size beside the narrowest wells", _FAULT, 0.3)
# Squared displacement by gradients over that by noise, where the box rejects proposals.
WALLS = Kind("walls", "drift of proposals beside the walls of a box", _FAULT, 0.3)
# The same, where the box reflects them: twice the bias of a mean on a constant slope, in standard deviations.
REFLECTING_WALLS = Kind("reflecting-walls", "drift of proposals beside walls that reflect", _FAULT, 0.1)
JUMPS = Kind("jumps", "jumps of the energy in temperatures", _FAULT, 0.5)
# Relative difference between changes of the energy and its gradient: below 1e-3 at short steps, whatever the energy.
OTHER_GRADIENT = Kind("other-gradient", "whether the gradient is that of the energy", _FAULT, 0.02)
UNMEASURED_BIAS = Kind("unmeasured-bias", "whether the bias can be measured", _DOUBT)

# A single estimate.
NO_DISTRIBUTION = Kind("no-distribution", "whether the sampler follows a distribution", _FAULT)
UNKNOWN_BIAS = Kind("unknown-bias", "whether the bias of the estimate is known", _DOUBT)
WRONG_TEMPERATURE = Kind("wrong-temperature", "gradients at the draws", _FAULT)
ONE_DRAW = Kind("one-draw", "the number of draws", _DOUBT)
CONSTANT = Kind("constant", "whether values differ", _DOUBT)
# Tails of a larger shape have no variance.
HEAVY_TAIL = Kind("heavy-tail", "tail of the weights", _DOUBT, 0.5)
SLOW_MIXING = Kind("slow-mixing", "autocorrelation times in the run", _DOUBT)
RARE_EVENTS = Kind("rare-events", "stretches of the run that carry the error", _DOUBT)
# Standard deviations between the start of a run and its end.
DRIFT = Kind("drift", "start of the run beside its end", _FAULT, 0.1)
DISAGREEMENT = Kind("disagreement", "agreement of chains (R-hat)", _FAULT, 1.05)
LARGE_R_HAT = Kind("large-r-hat", "agreement of chains with few effective draws", _DOUBT, 1.1)
FEW_DRAWS = Kind("few-draws", "effective draws", _DOUBT, 50.0)
Z_NOISE = Kind("z-noise", "energy noise in a ratio of normalizing constants", _FAULT, WEIGHT_NOISE.limit)
OVERLAP = Kind("overlap", "draws that represent another temperature", _DOUBT)

# Chains that disagree.
HIDDEN_UNITS = Kind("hidden-units", "weights that are equivalent by symmetry", _REMARK)
ESCAPE = Kind("escape", "chains that drift away from their starts", _FAULT, 1.4)
APART = Kind("apart", "chains that stay in different regions", _FAULT, 2.0)
