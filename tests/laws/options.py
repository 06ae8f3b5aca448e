"""Every option of every constructor: its default, a value away from it, and where its law is judged.

An option changes fields of the parts of a sampler: `cooling` that of `Exchange`, whichever constructor was given it. A field is
judged once, by a cell of `tests.laws.test_options` or by a test elsewhere. That is enough for all constructors that share the
field: they run the same code, and `tests/contract/test_options.py` checks that each of them sets it.
"""

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

import isotherm as iso
from isotherm.contour.draw_weights import RegularizedWeights
from isotherm.estimators import ControlVariate
from isotherm.exchange import AllPairs, DeterministicEvenOdd, EquiAcceptance, LadderSearch, StochasticEvenOdd
from isotherm.foundation.docstrings import defaults_of
from isotherm.foundation.parts import Part
from isotherm.samplers import METHODS
from isotherm.samplers.sampler import AnySampler, Specification, resolved
from tests.laws.exact import GRADIENT_SCALE, LAG, PRECISION, Linear, noise_of

REQUIRED = inspect.Parameter.empty


def options_of(method: str) -> dict[str, Any]:
    """The options of a constructor with their defaults; those that must be given have `REQUIRED`."""
    found: dict[str, Any] = {}
    for parameter in inspect.signature(METHODS[method]).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            (shared,) = typing.get_args(parameter.annotation)
            found |= defaults_of(shared)
        elif parameter.name != "step_size":
            found[parameter.name] = parameter.default
    return found


# Bins of the skewed well of `tests.laws.matrix`, and weights whose steps meet every bound.
PARTITION = (0.7, 10.3, 14)
_STEPS = (-0.9, 0.6, -1.1, 0.9, 1.3, -0.4, -0.7, 0.3, -0.2, -0.5, -0.3, -0.6, -0.2)
THETA = tuple(float(value) for value in 0.1 * np.exp(np.concatenate([[0.0], np.cumsum(_STEPS)])))
ADAPTATION = EquiAcceptance(0.05, of="temperature")
# A value of every option away from its default.
AWAY: dict[str, Any] = {
    "scales": np.eye(2),
    "adaptation": ADAPTATION,
    "bandwidth": 1.5,
    "bounds": (-1.0, 3.0),
    "box": (-6.0, 8.0),
    "buffer": 0.5,
    "buffer_gain": 0.2,
    "cooling": 5,
    "correction_factor": 4.0,
    "curvature_correction": True,
    "cycle_length": 50,
    "decay": 0.7,
    "empty_step": 1.0,
    "energy_batch": "fresh",
    "estimator": ControlVariate(10),
    "exploration_temperature": 1.2,
    "field": "theta^zeta",
    "floor": 0.1,
    "freeze_after": 1,
    "fresh_energies": True,
    "friction": 0.3,
    "gain": 1e-9,
    "gate_log_correction": 0.7,
    "gradient_scale": 2.0,
    "gradient_variance": 1.0,
    "hold_from": 0.6,
    "ignores_prior": True,
    "initial_theta": THETA,
    "intensity": 0.5,
    "is_exact": True,
    "jump": 0.8,
    "ladder": LadderSearch(num_steps=500),
    "max_displacement": 0.3,
    "measure_every": 10,
    "num_measured": 40,
    "num_replicas": 3,
    "partition": PARTITION,
    "path": "reference",
    "perturbation": 0.01,
    "refresh_every": 10,
    "regularizer": 0.5,
    "resample_every": 4,
    "sampling_from": 0.5,
    "scheme": AllPairs(),
    "slopes": "forward",
    "smoothing": 0.5,
    "step_factor": 0.5,
    "step_ratio": 2.0,
    "target": 0.3,
    "temperature": 2.0,
    "temperature_factor": 2.0,
    "temperatures": (2.0, 8.0),
    "theta": THETA,
    "variance": "tracked",
    "warm_up": 100,
    "weight_rule": RegularizedWeights(power=0.5, floor=1e-3),
    "window": 5,
    "zeta": 0.4,
}


def value_of(method: str, option: str) -> Any:
    """A value of an option away from its default."""
    if option == "is_adaptive":
        return not options_of(method)[option]
    if option == "num_replicas" and options_of(method)[option] == 3:
        return 4
    if option == "initial_theta" and method == "awsgld":
        return tuple(np.cumsum(THETA).tolist())
    return AWAY[option]


def base_of(method: str, option: str) -> tuple[Any, dict[str, Any]]:
    """The step size, and what else a call with an option needs to be a valid one."""
    options = options_of(method)
    needed: dict[str, Any] = {name: AWAY[name] for name, default in options.items() if default is REQUIRED}
    if "partition" in options:
        needed["partition"] = AWAY["partition"]
    step: Any = (0.1, 0.4) if method.startswith("deo") else 0.2
    if option == "num_replicas" and "temperatures" in options:
        step = (0.1, 0.4)
    if method == "swag" and option == "sampling_from":
        needed["cycle_length"] = 50
    if option in ("fresh_energies", "adaptation"):
        needed["temperatures"] = (1.0, 2.0, 4.0)
    if option == "fresh_energies":
        needed["scheme"] = AllPairs()
    if option == "perturbation":
        needed["field"] = "theta^zeta"
    if option == "initial_theta":
        needed["partition"] = PARTITION
    needed.pop(option, None)
    return step, needed


Field = tuple[str, str]


def fields_of(sampler: AnySampler) -> dict[Field, Any]:
    """The fields of all parts of a sampler, by the names of class and field; a specification is completed with its example."""
    found: dict[Field, Any] = {}

    def walk(part: Any) -> None:
        for field in dataclasses.fields(part):
            if field.name == "name" and part is sampler:
                continue
            value = getattr(part, field.name)
            is_part = isinstance(value, Part) or dataclasses.is_dataclass(value)
            found[type(part).__name__, field.name] = type(value) if is_part else _comparable(value)
            if is_part:
                walk(value)

    if isinstance(sampler, Specification):
        walk(sampler.search)
        sampler = sampler.example()
    walk(sampler)
    return found


def _comparable(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(_comparable(item) for item in value)
    return tuple(np.ravel(value).tolist()) if isinstance(value, np.ndarray) else value


def changed_by(method: str, option: str, value: Any) -> set[Field]:
    """The fields that an option changes, among those that the sampler has with it."""
    step, needed = base_of(method, option)
    default = options_of(method)[option]
    plain = {} if default is REQUIRED else {option: default}
    if default is REQUIRED and option == "cycle_length":
        plain = {option: 100}
    if option == "partition" and default in (REQUIRED, "auto"):
        plain = {option: (1.0, 12.0, 14)}
    if default is REQUIRED and option == "theta":
        plain = {option: tuple(reversed(THETA))}
    one, other = (fields_of(METHODS[method](step, **{**needed, **given})) for given in (plain, {option: value}))
    return {name for name, found in other.items() if name not in one or one[name] != found}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A sampler away from its defaults, on the quadratic energy.

    Attributes:
        method: the constructor.
        step_size: of it.
        options: all that are given.
        setting: "exact", "noise" on the gradient, or "batches" with a short last one.
        num_chains: of a run; None where the sampler knows.
    """

    method: str
    step_size: Any
    options: dict[str, Any]
    setting: str = "exact"
    num_chains: int | None = None

    def sampler(self, **changes: Any) -> iso.Sampler:
        return resolved(METHODS[self.method](self.step_size, **{**self.options, **changes}))


# Chains whose positions are sums of the noise before them. Of exchange samplers it is the target rung without swaps, which a large
# buffer or an intensity of next to nothing forbids.
NO_SWAPS: dict[str, Any] = {"buffer": 1e6, "buffer_gain": 0.0, "num_replicas": 3}
CYCLES: dict[str, Any] = {"cycle_length": 50, "sampling_from": 0.5, "hold_from": 0.6, "floor": 0.2}
LINEAR: dict[str, Cell] = {
    "sgld": Cell("sgld", 0.5, {"temperature": 2.0}),
    "sgld on batches": Cell("sgld", 0.5, {"temperature": 2.0}, "batches"),
    "sghmc": Cell("sghmc", 0.2, {"temperature": 2.0, "friction": 0.3, "resample_every": 4}),
    "sghmc with noise": Cell(
        "sghmc",
        0.2,
        {"temperature": 2.0, "friction": 0.4, "resample_every": 5, "gradient_variance": GRADIENT_SCALE**2 / 2.0},
        "noise",
    ),
    "sghmc on batches": Cell("sghmc", 0.2, {"temperature": 2.0, "friction": 0.4, "gradient_variance": 1.0}, "batches"),
    "psgld": Cell(
        "psgld",
        0.9,
        {"temperature": 2.0, "decay": 0.7, "regularizer": 0.5, "gradient_scale": 2.0, "freeze_after": 1},
    ),
    "cycsgld": Cell("cycsgld", 0.8, {**CYCLES, "temperature": 2.0, "exploration_temperature": 1.2}),
    "cycsghmc": Cell("cycsghmc", 0.6, {**CYCLES, "temperature": 2.0, "exploration_temperature": 1.2, "friction": 0.4}),
    "cycsgld on batches": Cell("cycsgld", 0.8, {**CYCLES, "temperature": 2.0}, "batches"),
    "cvr_resghmc": Cell(
        "cvr_resghmc",
        0.6,
        {**CYCLES, "temperatures": (2.0, 4.0), "friction": 0.4, "step_ratio": 1.2, "intensity": 1e-9},
        "batches",
    ),
    "deo_sgd": Cell("deo_sgd", (0.5, 0.9), {**NO_SWAPS, "temperature": 2.0, "window": 3}),
    "deo_star_psgd": Cell(
        "deo_star_psgd", (0.9, 1.2), {**NO_SWAPS, "temperature": 2.0, "decay": 1.0, "regularizer": 0.5}
    ),
    "deo_star_msgd": Cell("deo_star_msgd", (0.3, 0.6), {**NO_SWAPS, "temperature": 2.0, "friction": 0.4}),
}
# Those of `make test`; the others go along in `make test-long`.
QUICK = ("sgld", "sgld on batches", "sghmc", "sghmc with noise", "psgld", "cycsghmc", "cvr_resghmc")
# How far from the center chains start: the preconditioner that is frozen at once is that of this gradient.
START = 1.0
# Options that the linear recursion has; put back one by one, each gives other variances.
IN_THE_RECURSION = {
    *("temperature", "friction", "gradient_variance", "resample_every", "regularizer", "gradient_scale"),
    *("sampling_from", "hold_from", "floor", "exploration_temperature"),
}


def linear(cell: Cell, **changes: Any) -> Linear:
    """The chain of a cell from its docstring, with some options changed."""
    options = {**options_of(cell.method), **cell.options, **changes}
    given = options["temperatures"][0] if "temperatures" in options else options["temperature"]
    first = cell.step_size[0] if isinstance(cell.step_size, tuple) else cell.step_size
    step_size: Callable[[int], float] = lambda k: first  # noqa: E731
    temperature: Callable[[int], float] = lambda k: given  # noqa: E731
    if "cycle_length" in options:
        length, floor = options["cycle_length"], options["floor"]
        exploring = options.get("exploration_temperature", 0.0)
        held = lambda k: min(k % length / length, options["hold_from"])  # noqa: E731
        step_size = lambda k: floor + 0.5 * (first - floor) * (np.cos(np.pi * held(k)) + 1.0)  # noqa: E731
        temperature = lambda k: given if k % length >= options["sampling_from"] * length else exploring  # noqa: E731
    preconditioner = 1.0
    if "decay" in options:
        # V starts at 1; kept whole by a decay of 1, else as the first gradient leaves it.
        square = (options["gradient_scale"] * PRECISION * START) ** 2
        found = options["decay"] + (1.0 - options["decay"]) * square
        preconditioner = 1.0 / (options["regularizer"] + np.sqrt(found))
    return Linear(
        step_size,
        temperature,
        options.get("friction", 1.0),
        options.get("gradient_variance", 0.0),
        options.get("resample_every"),
        preconditioner,
        noise_of(cell.setting),
    )


def variances_of_draws(cell: Cell, **changes: Any) -> np.ndarray:
    """The variance over the draws of a cell, once the start is forgotten, and that of moves over `LAG` iterations."""
    options = {**options_of(cell.method), **cell.options, **changes}
    # The last of these are a multiple of all periods: 6 batches of an epoch, 4 or 5 iterations up to a new velocity, and cycles.
    number, last = 600, 300
    found = linear(cell, **changes).variances(number)
    iterations = np.arange(number - last, number)
    length = options.get("cycle_length", 1)
    first = options.get("sampling_from", 0.0) * length
    is_drawn = iterations % length >= first
    is_moved = is_drawn & (iterations % length - LAG >= first) if length > 1 else is_drawn
    moved = found[iterations[is_moved], 1].mean() if np.any(is_moved) else np.nan
    return np.array([found[iterations[is_drawn], 0].mean(), moved])


# Rungs with step sizes in proportion to their temperatures. At a finite step the law of a rung has the temperature
# T / (1 - eps h / 2), and differences of 1 / T are those of the temperatures that were asked for: exact swaps leave these laws as
# they are, and the variance of the target is T / (h (1 - eps h / 2)).
EXACT_SWAPS: dict[str, Cell] = {
    "ends of a ladder": Cell(
        "naive_resgld", (0.25, 1.0), {"temperatures": (2.0, 8.0), "num_replicas": 3, "scheme": StochasticEvenOdd()}
    ),
    "all pairs now and then": Cell(
        "resgld", (0.25, 0.5, 1.0), {"temperatures": (2.0, 4.0, 8.0), "scheme": AllPairs(), "intensity": 0.5}
    ),
    "factors": Cell(
        "naive_resgld", (0.5, 2.0), {"temperatures": (1.0, 4.0), "temperature_factor": 2.0, "step_factor": 0.5}
    ),
}


# Weights of bins that stay as they start, since the gain is next to nothing.
FROZEN: dict[str, Any] = {"temperature": 2.0, "partition": PARTITION, "gain": 1e-9, "initial_theta": THETA}
KNOWN: dict[str, Any] = {"temperature": 2.0, "partition": PARTITION, "theta": THETA}
RISING = tuple(float(value) for value in np.cumsum(np.geomspace(0.4, 0.02, 14)))
CONTOURS: dict[str, Cell] = {
    "zeta": Cell("csgld", 0.1, {**FROZEN, "zeta": 0.2}),
    "bounds": Cell("csgld", 0.1, {**FROZEN, "bounds": (-1.0, 3.0)}),
    "empty_step": Cell("csgld", 0.1, {**FROZEN, "empty_step": 1.0}),
    "slopes": Cell("icsgld", 0.1, {**FROZEN, "slopes": "forward"}, num_chains=2),
    "known": Cell("ksgld", 0.1, {**KNOWN, "zeta": 0.3, "bounds": (-0.1, 1.5)}),
    "cumulative": Cell("awsgld", 0.1, {**FROZEN, "zeta": 0.6, "initial_theta": RISING}),
    "weight_rule": Cell("csgld", 0.1, {**FROZEN, "weight_rule": RegularizedWeights(power=0.5, floor=1e-3)}),
}
# Swaps with energy noise of this standard deviation, and how far measurements of its variance scatter.
ENERGY_SCALE = 2.0
SCATTER: dict[str, Cell] = {
    "the mean of all": Cell(
        "resgld", (0.25, 1.0), {"temperatures": (2.0, 8.0), "measure_every": 10, "num_measured": 6}
    ),
    "smoothed": Cell(
        "resghmc",
        (0.25, 1.0),
        {"temperatures": (2.0, 8.0), "measure_every": 10, "num_measured": 6, "smoothing": 0.5},
    ),
}
# Options that bias on purpose, each with the words of the note that says so.
BOLD: dict[str, tuple[Cell, str]] = {
    "cooling": (
        Cell("resgld", (0.05, 0.2), {"temperatures": (2.0, 8.0), "cooling": 5}),
        "A pair rests for 5 iterations",
    ),
}
GATE = Cell(
    "resgld",
    (0.05, 0.2),
    {"temperatures": (2.0, 8.0), "scheme": DeterministicEvenOdd(10), "gate_log_correction": 0.7},
)
CORRECTIONS = Cell(
    "resgld",
    (0.25, 1.0),
    {"temperatures": (2.0, 8.0), "measure_every": 20, "num_measured": 20, "correction_factor": 4.0},
)
IGNORING = Cell("resgld", (0.1, 0.4), {"temperatures": (2.0, 8.0), "ignores_prior": True})
FRESH = Cell("resgld", (0.05, 0.1), {"temperatures": (2.0, 4.0), "energy_batch": "fresh"}, "batches")
DESCENTS: dict[str, Cell] = {
    "msgd": Cell("msgd", 0.3, {"friction": 0.3}),
    "swag": Cell("swag", 0.3, {"friction": 0.3, "cycle_length": 20, "sampling_from": 0.5}),
}
PARTICLES = Cell("svgd", 0.5, {"temperature": 2.0, "bandwidth": 1.5}, num_chains=2)
BUFFER = Cell(
    "deo_star_sgd",
    (0.1, 0.9),
    {
        **{"num_replicas": 4, "temperature": 2.0, "target": 0.3, "buffer": 0.5, "gain": 0.05, "buffer_gain": 0.2},
        **{"window": 5, "is_exact": True},
    },
)
CELLS: tuple[Cell, ...] = (
    *(cell for group in (LINEAR, EXACT_SWAPS, CONTOURS, SCATTER, DESCENTS) for cell in group.values()),
    *(cell for cell, _ in BOLD.values()),
    *(GATE, CORRECTIONS, IGNORING, FRESH, PARTICLES, BUFFER),
)


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """A test that judges options of a constructor.

    Attributes:
        method: the constructor.
        options: away from their defaults.
        test: its file and function.
    """

    method: str
    options: tuple[str, ...]
    test: str


_MATRIX = "tests/laws/test_matrix.py::test_a_sampler_keeps_its_promise"
ELSEWHERE = (
    *(Elsewhere(method, ("box",), _MATRIX) for method in METHODS),
    Elsewhere(
        "psgld",
        ("curvature_correction",),
        "tests/laws/test_langevin.py::test_curvature_correction_makes_a_moving_preconditioner_exact",
    ),
    Elsewhere(
        "resgld", ("variance",), "tests/laws/test_swap_noise.py::test_measured_batches_take_all_places_of_an_epoch"
    ),
    Elsewhere(
        "resgld",
        ("fresh_energies",),
        "tests/laws/test_swap_noise.py::test_pairs_in_turn_read_the_noise_of_their_own_batches",
    ),
    Elsewhere(
        "naive_resgld", ("adaptation",), "tests/laws/test_thesis_options.py::test_adapted_temperatures_accept_equally"
    ),
    Elsewhere(
        "resgld",
        ("ladder",),
        "tests/laws/test_ladder_search.py::test_a_run_with_nothing_but_a_step_size_finds_both_modes",
    ),
    Elsewhere(
        "vr_resgld",
        ("refresh_every",),
        "tests/laws/test_swap_noise.py::test_control_variates_have_residuals_of_their_own",
    ),
    Elsewhere(
        "vr_resgld",
        ("is_adaptive",),
        "tests/laws/test_exchange_runs.py::test_control_variates_are_unbiased_and_exact_at_their_anchor",
    ),
    Elsewhere("ghmc", ("friction",), "tests/laws/test_adjusted.py::test_moves_leave_the_law_unchanged"),
    Elsewhere("reghmc", ("path",), "tests/laws/test_adjusted.py::test_rungs_of_a_path_have_their_laws"),
    Elsewhere("reghmc", ("scales",), "tests/laws/test_automatic.py::test_choices_say_what_was_found_and_repeat_it"),
    Elsewhere("resghmc", ("jump",), "tests/laws/test_swap_options.py::test_a_swap_multiplies_the_factor"),
    Elsewhere(
        "csgld", ("field", "perturbation"), "tests/laws/test_contour_weights.py::test_updates_are_those_of_numpy"
    ),
    Elsewhere("csgld", ("warm_up",), "tests/laws/test_contour_weights.py::test_draws_of_the_warm_up_weigh_the_same"),
    Elsewhere("icsgld", ("estimator",), "tests/laws/test_contour.py::test_contours_of_a_control_variate"),
    Elsewhere("awsgld", ("max_displacement",), "tests/laws/test_boxes.py::test_a_limit_shortens_gradients_of_any_size"),
)


def judged() -> set[Field]:
    """The fields that some cell, or some test elsewhere, sets away from their defaults."""
    found: set[Field] = set()
    for cell in CELLS:
        defaults = options_of(cell.method)
        for option, value in cell.options.items():
            if defaults[option] is REQUIRED or _comparable(value) != _comparable(defaults[option]):
                found |= changed_by(cell.method, option, value)
    for test in ELSEWHERE:
        for option in test.options:
            found |= changed_by(test.method, option, value_of(test.method, option))
    return found
