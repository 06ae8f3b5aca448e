"""Random calls of `iso.sample`: most are valid, or at a boundary of what is; the others are wrong in one argument.

All numbers come from short menus, so that many calls share a program.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from hypothesis import strategies as st

import isotherm as iso
from isotherm.foundation.schedules import Annealed
from isotherm.samplers import METHODS
from tests.contract.test_samplers import OPTIONS, WITH_DATA
from tests.laws.options import AWAY, REQUIRED, options_of

Draw = Any


@dataclasses.dataclass(frozen=True)
class Named:
    """A value that prints as a name, so that a failing example can be read."""

    name: str
    value: Any

    def __repr__(self) -> str:
        return self.name


def squares(x):
    return jnp.asarray(0.5 * sum(jnp.sum((leaf - 1.0) ** 2) for leaf in jax.tree.leaves(x)))


def bounded(x):
    return jnp.minimum(squares(x), 3.0)


def quartic(x):
    return jnp.asarray(sum(jnp.sum(leaf**4) for leaf in jax.tree.leaves(x)))


def walled(x):
    return squares(x) - sum(jnp.sum(jnp.log(leaf + 2.0)) for leaf in jax.tree.leaves(x))


def stepped(x):
    return jnp.where(squares(x) > 4.0, jnp.inf, squares(x))


def never(x):
    return squares(x) * jnp.nan


def single(x):
    return squares(x).astype(jnp.float32)


def first_leaf(x):
    return 0.5 * jnp.sum(jax.tree.leaves(x)[0] ** 2)


def vector(x):
    return jnp.ravel(jax.tree.leaves(x)[0]) ** 2


def whole(x):
    return jnp.zeros((), jnp.int32)


def log_likelihood(x, y):
    return -0.5 * (y - sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x))) ** 2


def log_prior(x):
    return -squares(x)


DATA = np.linspace(-1.0, 1.0, 7, dtype=np.float32)


def _on_data(**options: Any) -> Any:
    return iso.from_likelihood(log_likelihood, log_prior, DATA, **options)


def _referenced() -> Any:
    normal = lambda key: jax.random.normal(key, (2,))  # noqa: E731
    return iso.with_reference(squares, normal, lambda x: -0.5 * x @ x - jnp.log(2.0 * jnp.pi))


# Built once: a program is compiled for each object. A potential that cannot be built is a wrong call, too.
ENERGIES = [Named(one.__name__, one) for one in (squares, bounded, quartic, walled, stepped, single, first_leaf)]
ON_DATA = [
    Named("batches of 2 of 7", _on_data(batch_size=2)),
    Named("batches of 1 of 7", _on_data(batch_size=1, batching="independent")),
    Named("batches of 7 of 7", _on_data(batch_size=7)),
    Named("all data", _on_data()),
    Named("own batches of 3 of 7", _on_data(batch_size=3, is_batch_shared=False)),
    Named("batches with replacement", _on_data(batch_size=5, batching="replacement")),
    Named("couplings without prior", _on_data(batch_size=2, coupling_includes_prior=False)),
    Named("streamed batches of 3", _on_data(batch_size=3, is_streamed=True)),
]
OTHERS = [
    Named("energy noise", iso.with_noise(iso.from_energy(squares), energy_scale=0.5)),
    Named("gradient noise", iso.with_noise(iso.from_energy(squares), gradient_scale=0.5, degrees=3.0)),
    Named("shared noise", iso.with_noise(iso.from_energy(squares), energy_scale=1.0, is_shared=True)),
    Named("positive", iso.transforms.constrain(lambda x: -squares(x), iso.transforms.positive())),
    Named("interval", iso.transforms.constrain(lambda x: -squares(x), iso.transforms.interval(0.0, 2.0))),
    Named("simplex", iso.transforms.constrain(lambda x: -squares(x), iso.transforms.simplex())),
    Named("ordered", iso.transforms.constrain(lambda x: -squares(x), iso.transforms.ordered())),
    Named(
        "circular", iso.transforms.constrain(lambda x: jnp.cos(jax.tree.leaves(x)[0]).sum(), iso.transforms.circular())
    ),
    Named("reference", _referenced()),
]
BAD_ENERGIES = [Named(one.__name__, one) for one in (vector, whole, never)] + [Named("no function", 3)]

DTYPES = (jnp.float32, jnp.float32, jnp.float32, jnp.float16, jnp.bfloat16)


def _positions(dtype: Any) -> dict[str, Any]:
    ones = lambda *shape: jnp.full(shape, 0.5, dtype)  # noqa: E731
    return {
        "scalar": ones(),
        "vector": ones(2),
        "matrix": ones(2, 3),
        "dict": {"a": ones(2), "b": ones()},
        "nested": {"a": [ones(2), (ones(1, 2),)]},
        "with an empty leaf": {"a": ones(2), "b": ones(0)},
        "mixed": {"a": ones(2), "b": jnp.zeros((), jnp.float32)},
        "increasing": jnp.array([0.25, 0.75], dtype),
    }


BAD_POSITIONS = [
    Named("empty", jnp.zeros(0)),
    Named("integers", jnp.zeros(2, jnp.int32)),
    Named("nan", jnp.full(2, jnp.nan)),
    Named("none", None),
    Named("no leaves", {}),
    Named("text", "zero"),
    Named("complex", jnp.zeros(2, jnp.complex64)),
    Named("list of None", [None]),
    Named("a function of nothing", lambda: jnp.zeros(2)),
    Named("a function to text", lambda key: "zero"),
    Named("infinite", jnp.array([jnp.inf, 0.0])),
]

_optax_schedule = optax.linear_schedule(0.1, 0.0, 10)
SCHEDULES = [
    Named("Annealed", Annealed(0.1, rate=1.5, every=2)),
    Named("falling to 0", _optax_schedule),
    Named("negative later", lambda k: jnp.float32(0.1) - 0.05 * k),
    Named("infinite later", lambda k: 0.1 / jnp.maximum(2.0 - k, 0.0)),
    Named("half precision", lambda k: jnp.float16(0.1)),
]
BAD_SCHEDULES = [
    Named("integer schedule", lambda k: k),
    Named("vector schedule", lambda k: jnp.ones(2) * k),
    Named("schedule of nothing", lambda: 0.1),
    Named("schedule from 0", lambda k: 0.1 * k),
    Named("schedule of text", lambda k: "a"),
]
BAD = [
    -1,
    0,
    0.0,
    -0.5,
    float("nan"),
    float("inf"),
    "x",
    None,
    (),
    (1,),
    True,
    10**30,
    1e300,
    1e-320,
    [[1.0]],
    1j,
    object,
]
BAD_ARRAYS = [np.array([1.0, np.nan]), np.zeros((0,)), np.ones(3), np.array(["a"]), {"a": 0.1}, [0.1, -0.1]]
COLLECTS = [
    Named("sums", lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x))),
    Named("counts", lambda x: jnp.zeros((), jnp.int32)),
    Named("dict", lambda x: {"a": jax.tree.leaves(x)[0], "b": jnp.zeros((0,))}),
    Named("reciprocals", lambda x: 1.0 / jax.tree.leaves(x)[0]),
]
BAD_COLLECTS = [
    Named("nothing", lambda x: None),
    Named("text", lambda x: "a"),
    Named("a missing key", lambda x: x["missing"]),
    Named("two arguments", lambda x, y: x),
    Named("no function", 3),
    Named("empty tree", lambda x: {}),
]

# Values of options beside `AWAY`, most at a boundary.
EDGES: dict[str, list[Any]] = {
    "bandwidth": [1e-6, 1e6],
    "bounds": [(0.0, 0.5), (-1e6, 1e6)],
    "box": [(-1.0, 1.0), (0.0, np.inf), (-2.0, 2.0, "reflect"), (0.499, 0.501, "reflect"), (-1e30, 1e30, "reflect")],
    "buffer": [0.0, 1e9],
    "correction_factor": [1.0, 1e6, 1e-6],
    "cooling": [0, 10**6],
    "cycle_length": [2, 10, 1000],
    "decay": [0.0, 1.0],
    "energy_batch": ["shared", "fresh"],
    "exploration_temperature": [0.0, 1e6],
    "floor": [0.0, 0.01],
    "freeze_after": [0, 5],
    "friction": [1.0, 1e-6],
    "gradient_scale": [1e-6, 1e20],
    "gradient_variance": [0.0, 1e-9],
    "hold_from": [0.0, 1.0],
    "jump": [1e-6, 1e6],
    "max_displacement": [1e-6, 1e30],
    "measure_every": [1, 2, 1000],
    "num_measured": [2, 3],
    "num_replicas": [2, 3, 4],
    "partition": [(1.0, 9.0, 10), (0.0, 1e-3, 3), (1e20, 2e20, 4), (-5.0, 100.0, 2)],
    "regularizer": [1e-20, 1e10],
    "resample_every": [1, None],
    "sampling_from": [0.0, 0.9],
    "temperature": [0.0, 1e-6, 1.0, 4.0, 1e10],
    "temperatures": [(1.0, 1.0001), (1.0, 1e8), (1.0, 2.0, 4.0)],
    "window": [1, 2, "optimal"],
    "zeta": [0.0, 1.0, 50.0],
    "intensity": [1e-6, 1e6],
    "target": [0.01, 0.99],
    "buffer_gain": [0.0, 10.0],
    "warm_up": [0, 3, 10**6],
    "empty_step": [0.0, 1e6],
    "refresh_every": [1, 3],
    "smoothing": [0.0, 1.0],
    "variance": ["batch", "tracked"],
}
# These need pilot runs, which take seconds.
PILOTS = {"ladder"}
STEPS = [0.05, 0.05, 0.05, 1e-6, 1.0, 3.0, 1e3, 1e12, 1e30, 3e38, np.float32(0.1), np.float64(0.1)]
# By the name of a position.
TREES: dict[str, list[Any]] = {
    "vector": [np.array([0.1, 0.2]), jnp.array([0.1, 0.2]), np.array([1e-30, 1e30])],
    "matrix": [0.1 * np.ones((2, 3))],
    "dict": [{"a": np.array([0.1, 0.2]), "b": 0.2}],
}


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of `iso.sample`."""

    method: str
    step_size: Any
    options: dict[str, Any]
    potential: Named
    position: str
    dtype: str
    start: str
    wrong_init: Named | None
    run: dict[str, Any]
    is_double: bool = False

    def init(self) -> Any:
        """The start."""
        if self.wrong_init is not None:
            return self.wrong_init.value
        position = _positions(jnp.float64 if self.is_double else jnp.dtype(self.dtype))[self.position]
        if self.start == "one":
            return position
        if self.start == "per chain":
            number = self.run.get("num_chains") or 2
            number = number if isinstance(number, int) and number > 0 else 2
            grown = lambda leaf: jnp.stack([leaf * (1.0 + 0.1 * place) for place in range(number)])  # noqa: E731
            return iso.per_chain(jax.tree.map(grown, position))
        return lambda key: jax.tree.map(lambda leaf: leaf * (1 + jax.random.uniform(key, (), leaf.dtype)), position)

    def sample(self) -> iso.Run:
        """What the call returns."""
        given = {name: value.value if isinstance(value, Named) else value for name, value in self.run.items()}
        step = self.step_size.value if isinstance(self.step_size, Named) else self.step_size
        options = {name: value.value if isinstance(value, Named) else value for name, value in self.options.items()}
        sampler = METHODS[self.method](step, **options)
        return iso.sample(self.potential.value, sampler, init=self.init(), progress=False, **given)


def _step_sizes(method: str, position: str, *, is_long: bool) -> list[Any]:
    """Valid step sizes, most of them numbers."""
    pilots = ["auto"] if is_long else []
    if method.startswith("deo"):
        return [(0.01, 0.1), (0.01, 0.1), (1e-6, 1e3), (0.1, 0.1)]
    if method.startswith("cyc") or method == "cvr_resghmc":
        return STEPS
    if "temperatures" in options_of(method):
        return [*STEPS, *pilots]
    return [*STEPS, *SCHEDULES, *TREES.get(position, []), *pilots]


@st.composite
def options_for(draw: Draw, method: str) -> dict[str, Any]:
    """Valid options of a constructor, which may not fit together."""
    known = options_of(method)
    options = {name: value for name, value in OPTIONS.get(method, {}).items() if name != "step_size"}
    needed = [name for name, default in known.items() if default is REQUIRED and name not in options]
    options |= {name: EDGES[name][1] if name in EDGES else AWAY[name] for name in needed}
    free = sorted(set(known) & (set(AWAY) | set(EDGES)) - PILOTS)
    for name in draw(st.lists(st.sampled_from(free), max_size=3, unique=True)):
        menu = [*([AWAY[name]] if name in AWAY else []), *EDGES.get(name, [])]
        if name == "temperature":
            menu += SCHEDULES[:3]
        options[name] = draw(st.sampled_from(menu))
    return options


@st.composite
def run_arguments(draw: Draw, method: str, *, num_devices: int, is_long: bool) -> dict[str, Any]:
    """Valid arguments of `iso.sample`, which may not fit together."""
    given: dict[str, Any] = {"num_steps": draw(st.sampled_from([12, 12, 1, 2, 7, 23]))}
    menus: dict[str, list[Any]] = {
        "num_chains": [1, 2, 3, 4],
        "num_runs": [None, 1, 2],
        "num_ladders": [1, 2, 3],
        "seed": [0, 1, 2**31, jax.random.key(3)],
        "thinning": [1, 2, 5],
        "burn_in": [0, 1, 5],
        "collect": COLLECTS,
        "chain_mode": ["vmap", "map", "unroll", "auto"],
        "block_length": [1, 5, 1000],
        "track_best": [True, False],
        "target_energy": [0.5, 100.0],
        "measure_bias": [False],
        "throw": [True],
        "on_divergence": ["freeze", "stop", "restart"],
        "devices": [1, num_devices],
    }
    for name in draw(st.lists(st.sampled_from(sorted(menus)), max_size=4 if is_long else 2, unique=True)):
        given[name] = draw(st.sampled_from(menus[name]))
    if method == "svgd":
        given["num_chains"] = 3
    return given


@st.composite
def calls(draw: Draw, methods: tuple[str, ...], *, num_devices: int = 1, is_long: bool = False) -> Call:
    """A call with one of some constructors; of three, one is wrong somewhere."""
    method = draw(st.sampled_from(methods))
    # Fewer structures for `make test`: most of its time is compilation.
    some = slice(None) if is_long else slice(3)
    potentials = ON_DATA[some] if method in WITH_DATA else [*ENERGIES, *ENERGIES[:2], *ON_DATA[some], *OTHERS]
    potential = draw(st.sampled_from(potentials))
    options, run = draw(options_for(method)), draw(run_arguments(method, num_devices=num_devices, is_long=is_long))
    position = draw(st.sampled_from(sorted(_positions(jnp.float32)) if is_long else ["dict", "vector", "nested"]))
    if potential.name in ("reference", "simplex", "ordered"):
        position = "vector" if potential.name != "ordered" else "increasing"
    step_size = draw(st.sampled_from(_step_sizes(method, position, is_long=is_long)))
    dtype = jnp.dtype(draw(st.sampled_from(DTYPES if is_long else DTYPES[1:4]))).name
    start = draw(st.sampled_from(["function", "per chain"] if method == "svgd" else ["one", "function", "per chain"]))
    wrong_init = None
    where = draw(st.sampled_from([""] * 8 + ["step_size", "options", "init", "run", "potential"]))
    if where == "step_size":
        step_size = draw(st.sampled_from([*BAD, *BAD_ARRAYS, *BAD_SCHEDULES]))
    elif where == "options":
        name = draw(st.sampled_from(sorted(options_of(method))))
        options[name] = draw(st.sampled_from([*BAD, *BAD_ARRAYS, *BAD_SCHEDULES]))
    elif where == "init":
        wrong_init = draw(st.sampled_from(BAD_POSITIONS))
    elif where == "potential":
        potential = draw(st.sampled_from(BAD_ENERGIES))
    elif where == "run":
        name = draw(
            st.sampled_from(
                [
                    "num_steps",
                    "num_chains",
                    "num_runs",
                    "num_ladders",
                    "seed",
                    "thinning",
                    "burn_in",
                    "collect",
                    "chain_mode",
                    "block_length",
                    "track_best",
                    "target_energy",
                    "devices",
                ]
            )
        )
        run[name] = draw(st.sampled_from(BAD_COLLECTS if name == "collect" else BAD))
    is_double = draw(st.sampled_from([False] * 9 + [True]))
    return Call(method, step_size, options, potential, position, dtype, start, wrong_init, run, is_double)
