"""Wrong and good runs by somebody who had not seen the checks, on targets of known truth; see `tests.silent.cases` for the others.

Estimates of means are in true standard deviations.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

import isotherm as iso
from tests.silent.cases import Case

CASES: list[Case] = []


def case(name, is_good, why, truths):
    def add(run):
        CASES.append(Case(name, is_good, why, run, tuple(truths)))
        return run

    return add


def normal_truths(index, mean, sd, prob_at=None, what=None):
    """Of one normal coordinate."""
    of = what or (lambda x: x[index])
    found = [
        (f"mean {index}", lambda x: (of(x) - mean) / sd, 0.0),
        (f"var {index}", lambda x: ((of(x) - mean) / sd) ** 2, 1.0),
    ]
    if prob_at is not None:
        found.append(
            (
                f"prob {index} above",
                lambda x: jnp.where((of(x) - mean) / sd > prob_at, 1.0, 0.0),
                float(stats.norm.sf(prob_at)),
            )
        )
    return found


def spread(center, scale):
    center = jnp.asarray(center, jnp.float32)
    return lambda key: center + scale * jax.random.normal(key, center.shape)


def uniform(shape, low, high):
    return lambda key: jax.random.uniform(key, shape, minval=low, maxval=high)


def density_truths(log_density, low, high, points=()):
    """Mean, sd and a function for probabilities, by a fine grid in double precision."""
    grid = np.linspace(low, high, 400_001)
    logs = log_density(grid)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean = float((mass * grid).sum())
    sd = float(np.sqrt((mass * (grid - mean) ** 2).sum()))
    return mean, sd, lambda a: float(mass[grid > a].sum())


# Conjugate linear regression, d = 5, N = 500
rng = np.random.default_rng(10)
REG_N, REG_D = 500, 5
reg_x = rng.normal(size=(REG_N, REG_D)) @ (np.eye(REG_D) + 0.3 * rng.normal(size=(REG_D, REG_D)) / np.sqrt(REG_D))
reg_y = reg_x @ np.array([1.0, -0.5, 0.2, 2.0, 0.0]) + rng.normal(size=REG_N)
reg_precision = reg_x.T @ reg_x + np.eye(REG_D) / 25.0
reg_cov = np.linalg.inv(reg_precision)
reg_mean = reg_cov @ reg_x.T @ reg_y
reg_data = (jnp.asarray(reg_x, jnp.float32), jnp.asarray(reg_y, jnp.float32))
REG_TRUTHS = [t for i in (0, 3) for t in normal_truths(i, reg_mean[i], np.sqrt(reg_cov[i, i]), 1.0)]


@functools.cache
def regression(batch_size, **options):
    return iso.from_likelihood(
        lambda w, e: -0.5 * (e[1] - e[0] @ w) ** 2,
        lambda w: -0.5 * jnp.sum(w**2) / 25.0,
        reg_data,
        batch_size=batch_size,
        **options,
    )


@case(
    "regression sgld batches too small",
    False,
    "batches of 10 of 500 at this step add half the temperature as gradient noise",
    REG_TRUTHS,
)
def _(seed):
    return iso.sample(
        regression(10),
        iso.sgld(1e-4),
        num_steps=30_000,
        num_chains=4,
        thinning=10,
        burn_in=2000,
        seed=seed,
        init=spread(reg_mean, 0.1),
    )


@case("regression sgld careful", True, "batches of 100 at a short step, eight chains from spread starts", REG_TRUTHS)
def _(seed):
    return iso.sample(
        regression(100),
        iso.sgld(3e-5),
        num_steps=60_000,
        num_chains=8,
        thinning=20,
        burn_in=2000,
        seed=seed,
        init=spread(reg_mean, 0.1),
    )


@case(
    "regression sgld schedule freezes",
    False,
    "the step decays as 1 / k, and chains come to rest before they have seen the posterior",
    REG_TRUTHS,
)
def _(seed):
    return iso.sample(
        regression(100),
        iso.sgld(lambda k: 2e-3 / (k + 40.0)),
        num_steps=20_000,
        num_chains=4,
        thinning=5,
        burn_in=2000,
        seed=seed,
        init=spread(reg_mean, 0.1),
    )


# Poisson counts of three groups, conjugate gamma, log rates
pois_group = np.repeat(np.arange(3), 120)
pois_y = rng.poisson(np.array([2.0, 4.0, 7.0])[pois_group])
pois_a = 2.0 + np.array([pois_y[pois_group == j].sum() for j in range(3)])
pois_b = 0.5 + 120.0
POIS_TRUTHS = []
for j in (0, 2):
    m_, s_ = float(special.digamma(pois_a[j]) - np.log(pois_b)), float(np.sqrt(special.polygamma(1, pois_a[j])))
    POIS_TRUTHS += [
        (f"mean {j}", lambda x, j=j, m=m_, s=s_: (x[j] - m) / s, 0.0),
        (f"var {j}", lambda x, j=j, m=m_, s=s_: ((x[j] - m) / s) ** 2, 1.0),
        (
            f"prob {j}",
            lambda x, j=j, m=m_, s=s_: jnp.where(x[j] > m + s, 1.0, 0.0),
            float(stats.gamma.sf(np.exp(m_ + s_), pois_a[j], scale=1 / pois_b)),
        ),
    ]
pois_data = (jnp.asarray(pois_group, jnp.int32), jnp.asarray(pois_y, jnp.float32))
pois_start = spread(np.log(pois_a / pois_b), 0.15)


@functools.cache
def poisson(batch_size, **options):
    return iso.from_likelihood(
        lambda t, e: e[1] * t[e[0]] - jnp.exp(t[e[0]]),
        lambda t: jnp.sum(2.0 * t - 0.5 * jnp.exp(t)),
        pois_data,
        batch_size=batch_size,
        **options,
    )


@case("counts sghmc careful", True, "large batches, short step, high friction", POIS_TRUTHS)
def _(seed):
    return iso.sample(
        poisson(120),
        iso.sghmc(6e-6, friction=0.2),
        num_steps=80_000,
        num_chains=8,
        thinning=40,
        burn_in=3000,
        seed=seed,
        init=pois_start,
    )


# AR(1) normal, d = 50, rho = 0.8
AR_RHO = 0.8


def ar_energy(x):
    return 0.5 * x[0] ** 2 + 0.5 * jnp.sum((x[1:] - AR_RHO * x[:-1]) ** 2) / (1 - AR_RHO**2)


AR_DIFF = float(np.sqrt(2 - 2 * AR_RHO))
AR_TRUTHS = normal_truths(25, 0.0, 1.0, 1.0) + normal_truths("diff", 0.0, AR_DIFF, 1.0, what=lambda x: x[10] - x[11])


@case(
    "chain50 sgld step too long",
    False,
    "the step is near the limit of stability for differences of neighbours",
    AR_TRUTHS,
)
def _(seed):
    return iso.sample(
        ar_energy,
        iso.sgld(0.08),
        num_steps=20_000,
        num_chains=4,
        thinning=10,
        burn_in=1000,
        seed=seed,
        init=spread(np.zeros(50), 1.0),
    )


@case("chain50 sghmc careful", True, "momentum with a short step, eight chains", AR_TRUTHS)
def _(seed):
    return iso.sample(
        ar_energy,
        iso.sghmc(0.006),
        num_steps=30_000,
        num_chains=8,
        thinning=40,
        burn_in=2000,
        seed=seed,
        init=spread(np.zeros(50), 1.5),
    )


# Log of a gamma variable, skewed, d = 1 (and with a scale, d = 4)
LG_A = 1.5
LG_MEAN, LG_SD = float(special.digamma(LG_A)), float(np.sqrt(special.polygamma(1, LG_A)))
LG_TRUTHS = [
    ("mean", lambda x: (x - LG_MEAN) / LG_SD, 0.0),
    ("var", lambda x: ((x - LG_MEAN) / LG_SD) ** 2, 1.0),
    ("prob low", lambda x: jnp.where(x < -1.5, 1.0, 0.0), float(stats.gamma.cdf(np.exp(-1.5), LG_A))),
]


def log_gamma(x):
    return -LG_A * x + jnp.exp(x)


@case(
    "loggamma psgld adapts forever",
    False,
    "the preconditioner follows the gradient of a skewed density to the end",
    LG_TRUTHS,
)
def _(seed):
    return iso.sample(
        log_gamma,
        iso.psgld(0.02, decay=0.9),
        num_steps=100_000,
        num_chains=4,
        thinning=10,
        burn_in=5000,
        seed=seed,
        init=spread(0.0, 1.0),
    )


@case("loggamma csgld careful", True, "one well, contour weights, exact energies", LG_TRUTHS)
def _(seed):
    return iso.sample(
        log_gamma,
        iso.csgld(0.02),
        num_steps=150_000,
        num_chains=6,
        thinning=20,
        burn_in=10_000,
        seed=seed,
        init=spread(0.0, 1.0),
    )


# Independent Student t
T_DF = 8.0
T_SD = float(np.sqrt(T_DF / (T_DF - 2)))


def student(x):
    return 0.5 * (T_DF + 1) * jnp.sum(jnp.log1p(x**2 / T_DF))


T_TRUTHS = [
    ("mean 1", lambda x: x[1] / T_SD, 0.0),
    ("var 1", lambda x: (x[1] / T_SD) ** 2, 1.0),
    ("prob 1", lambda x: jnp.where(jnp.abs(x[1]) > 2.0, 1.0, 0.0), float(2 * stats.t.sf(2.0, T_DF))),
]


@case("student8 cycsgld careful", True, "long sampling stages at short steps", T_TRUTHS)
def _(seed):
    return iso.sample(
        student,
        iso.cycsgld(0.05, cycle_length=5000, sampling_from=0.5, hold_from=0.9, floor=0.008),
        num_steps=300_000,
        num_chains=10,
        thinning=25,
        seed=seed,
        init=spread(np.zeros(3), 2.0),
    )


HEAVY = 1.0
HEAVY_TRUTHS = [
    ("prob beyond 5", lambda x: jnp.where(jnp.abs(x) > 5.0, 1.0, 0.0), float(2 * stats.t.sf(5.0, HEAVY))),
    ("prob beyond 2", lambda x: jnp.where(jnp.abs(x) > 2.0, 1.0, 0.0), float(2 * stats.t.sf(2.0, HEAVY))),
]


@case("heavy sgld short", False, "tails of a Cauchy law that chains from the middle do not reach in time", HEAVY_TRUTHS)
def _(seed):
    return iso.sample(
        lambda x: 0.5 * (HEAVY + 1) * jnp.log1p(x**2 / HEAVY),
        iso.sgld(0.01),
        num_steps=4_000,
        num_chains=4,
        thinning=4,
        burn_in=500,
        seed=seed,
        init=spread(0.0, 0.5),
    )


# Two modes on a line
def mixture(masses, means, sds):
    logs = jnp.log(jnp.asarray(masses)) - jnp.log(jnp.asarray(sds))
    means, sds = jnp.asarray(means), jnp.asarray(sds)
    return lambda x: -jax.scipy.special.logsumexp(logs - 0.5 * ((x - means) / sds) ** 2)


def mixture_truths(masses, means, sds, at):
    masses, means, sds = (np.asarray(v, float) for v in (masses, means, sds))
    mean = float(masses @ means)
    sd = float(np.sqrt(masses @ (sds**2 + (means - mean) ** 2)))
    return [
        ("mean", lambda x: (x - mean) / sd, 0.0),
        ("var", lambda x: ((x - mean) / sd) ** 2, 1.0),
        ("prob right", lambda x: jnp.where(x > at, 1.0, 0.0), float(masses @ stats.norm.sf(at, means, sds))),
    ]


TWO = ((0.3, 0.7), (-3.0, 3.0), (1.0, 0.7))


@case("two modes icsgld careful", True, "contours over the barrier, eight chains", mixture_truths(*TWO, 0.0))
def _(seed):
    return iso.sample(
        mixture(*TWO),
        iso.icsgld(0.015),
        num_steps=80_000,
        num_chains=8,
        thinning=20,
        burn_in=10_000,
        seed=seed,
        init=uniform((), -5.0, 5.0),
    )


FAR = ((0.3, 0.7), (-4.0, 4.0), (1.0, 1.0))


@case(
    "far modes resgld hot rung too cool",
    False,
    "a hot rung of 1.3 crosses the barrier as rarely as the target",
    mixture_truths(*FAR, 0.0),
)
def _(seed):
    return iso.sample(
        mixture(*FAR),
        iso.resgld(0.02, temperatures=(1.0, 1.3)),
        num_steps=30_000,
        num_ladders=4,
        thinning=10,
        burn_in=1000,
        seed=seed,
        init=uniform((), -6.0, 6.0),
    )


NARROW = ((0.8, 0.2), (0.0, 4.0), (1.0, 0.1))


@case("narrow well sgld", False, "a narrow well that few chains enter and none leave", mixture_truths(*NARROW, 3.0))
def _(seed):
    return iso.sample(
        mixture(*NARROW),
        iso.sgld(1e-3),
        num_steps=60_000,
        num_chains=8,
        thinning=20,
        burn_in=2000,
        seed=seed,
        init=uniform((), -1.0, 6.0),
    )


ONE = ((0.5, 0.5), (-2.2, 2.2), (0.7, 0.7))


@case(
    "one chain few crossings",
    False,
    "one chain of sgld that crossed a barrier a handful of times",
    mixture_truths(*ONE, 0.0),
)
def _(seed):
    return iso.sample(
        mixture(*ONE),
        iso.sgld(0.01),
        num_steps=25_000,
        num_chains=1,
        thinning=5,
        burn_in=500,
        seed=seed,
        init=jnp.array(0.0),
    )


CYC = ((0.75, 0.25), (-1.5, 2.0), (0.3, 1.0))


@case(
    "cycsgld masses of descents",
    False,
    "cycles visit both modes in the proportions of their basins",
    mixture_truths(*CYC, -0.5),
)
def _(seed):
    return iso.sample(
        mixture(*CYC),
        iso.cycsgld(
            0.05, cycle_length=1000, sampling_from=0.7, hold_from=0.8, floor=0.002, exploration_temperature=6.0
        ),
        num_steps=100_000,
        num_chains=4,
        thinning=5,
        seed=seed,
        init=uniform((), -4.0, 4.0),
    )


# Two modes in ten dimensions
def ten_energy(x):
    return mixture((0.35, 0.65), (-2.5, 2.5), (1.0, 1.0))(x[0]) + 0.5 * jnp.sum(x[1:] ** 2)


TEN_TRUTHS = [
    (f"{label} x0", lambda x, f=f: f(x[0]), v)
    for label, f, v in mixture_truths((0.35, 0.65), (-2.5, 2.5), (1.0, 1.0), 0.0)
] + normal_truths(5, 0.0, 1.0, 1.0)


@case("ten dimensions resghmc careful", True, "four rungs with momentum, eight ladders", TEN_TRUTHS)
def _(seed):
    return iso.sample(
        ten_energy,
        iso.resghmc(0.01, temperatures=(1.0, 1.5, 2.2, 3.4)),
        num_steps=50_000,
        num_ladders=8,
        thinning=20,
        burn_in=3000,
        seed=seed,
        init=spread(np.zeros(10), 2.0),
    )


# Three modes in the plane
TRI_W, TRI_M, TRI_S = (
    np.array([0.5, 0.3, 0.2]),
    np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]]),
    np.array([0.8, 0.6, 1.0]),
)
tri_logs = jnp.asarray(np.log(TRI_W) - 2 * np.log(TRI_S))


def triangle(x):
    return -jax.scipy.special.logsumexp(tri_logs - 0.5 * jnp.sum((x - TRI_M) ** 2, -1) / TRI_S**2)


TRI_MEAN = float(TRI_W @ TRI_M[:, 0])
TRI_SD = float(np.sqrt(TRI_W @ (TRI_S**2 + (TRI_M[:, 0] - TRI_MEAN) ** 2)))
TRI_TRUTHS = [
    ("mean x", lambda x: (x[0] - TRI_MEAN) / TRI_SD, 0.0),
    ("var x", lambda x: ((x[0] - TRI_MEAN) / TRI_SD) ** 2, 1.0),
    ("prob right", lambda x: jnp.where(x[0] > 2.0, 1.0, 0.0), float(TRI_W @ stats.norm.sf(2.0, TRI_M[:, 0], TRI_S))),
    ("prob up", lambda x: jnp.where(x[1] > 2.0, 1.0, 0.0), float(TRI_W @ stats.norm.sf(2.0, TRI_M[:, 1], TRI_S))),
]


@case("triangle resgld careful", True, "three rungs, eight ladders from anywhere", TRI_TRUTHS)
def _(seed):
    return iso.sample(
        triangle,
        iso.resgld(0.015, temperatures=(1.0, 2.2, 5.0)),
        num_steps=100_000,
        num_ladders=8,
        thinning=20,
        burn_in=5000,
        seed=seed,
        init=uniform((2,), -1.0, 5.0),
    )


# Funnels
def funnel(sd, count):
    return lambda x: 0.5 * (x[0] / sd) ** 2 + 0.5 * jnp.exp(-x[0]) * jnp.sum(x[1:] ** 2) + 0.5 * count * x[0]


@case(
    "funnel sgld",
    False,
    "the neck is narrower than the step and the mouth is far away",
    normal_truths(0, 0.0, 2.0, 1.0),
)
def _(seed):
    return iso.sample(
        funnel(2.0, 5),
        iso.sgld(0.05),
        num_steps=40_000,
        num_chains=4,
        thinning=10,
        burn_in=2000,
        seed=seed,
        init=spread(np.zeros(6), 1.0),
    )


@case(
    "mild funnel sghmc careful",
    True,
    "a funnel of scale 0.5 with a short step",
    [*normal_truths(0, 0.0, 0.5, 1.0), ("var x", lambda x: x[2] ** 2 / float(np.exp(0.125)), 1.0)],
)
def _(seed):
    return iso.sample(
        funnel(0.5, 4),
        iso.sghmc(3e-3),
        num_steps=60_000,
        num_chains=8,
        thinning=20,
        burn_in=2000,
        seed=seed,
        init=spread(np.zeros(5), 0.7),
    )


# In a box
BETA_SD = float(stats.beta.std(0.5, 1.5))
TN_MEAN, TN_SD, tn_above = density_truths(lambda x: -0.5 * (x - 0.5) ** 2, 0.0, 2.0)


@case(
    "box beta sgld at the walls",
    False,
    "an arcsine law whose walls attract: near them every move leaves the box and is rejected",
    [
        ("mean", lambda x: (x - 0.25) / BETA_SD, 0.0),
        ("var", lambda x: ((x - 0.25) / BETA_SD) ** 2, 1.0),
        ("prob low", lambda x: jnp.where(x < 0.05, 1.0, 0.0), float(stats.beta.cdf(0.05, 0.5, 1.5))),
    ],
)
def _(seed):
    return iso.sample(
        lambda x: 0.5 * jnp.log(x) - 0.5 * jnp.log1p(-x),
        iso.sgld(2e-3, box=(1e-6, 1.0 - 1e-6)),
        num_steps=60_000,
        num_chains=4,
        thinning=10,
        burn_in=2000,
        seed=seed,
        init=uniform((), 0.1, 0.9),
    )


@case(
    "box normal sgld careful",
    True,
    "a truncated normal in a box with a short step",
    [
        ("mean 0", lambda x: (x[0] - TN_MEAN) / TN_SD, 0.0),
        ("var 0", lambda x: ((x[0] - TN_MEAN) / TN_SD) ** 2, 1.0),
        ("prob 0", lambda x: jnp.where(x[0] > 1.0, 1.0, 0.0), tn_above(1.0)),
    ],
)
def _(seed):
    return iso.sample(
        lambda x: 0.5 * jnp.sum((x - 0.5) ** 2),
        iso.sgld(0.003, box=(0.0, 2.0)),
        num_steps=120_000,
        num_chains=6,
        thinning=40,
        burn_in=5000,
        seed=seed,
        init=uniform((2,), 0.1, 1.9),
    )


# A jump in the energy
JUMP = 1.5
_half = float(stats.norm.sf(0.5))
JUMP_P = _half * np.exp(-JUMP) / (1 - _half + _half * np.exp(-JUMP))


@case(
    "jump sgld",
    False,
    "a penalty switched on beyond a line has no gradient",
    [("prob beyond", lambda x: jnp.where((x[0] + x[1]) / np.sqrt(2) > 0.5, 1.0, 0.0), float(JUMP_P))],
)
def _(seed):
    return iso.sample(
        lambda x: 0.5 * jnp.sum(x**2) + jnp.where((x[0] + x[1]) / np.sqrt(2) > 0.5, JUMP, 0.0),
        iso.sgld(0.02),
        num_steps=40_000,
        num_chains=4,
        thinning=10,
        burn_in=1000,
        seed=seed,
        init=spread(np.zeros(2), 1.5),
    )


# Positions far from zero
NORTH = 4_649_776.0


@case(
    "far coordinates sgld float32",
    False,
    "map coordinates in metres, whose spacing in float32 exceeds a move",
    [t for t in normal_truths(0, NORTH, 1.5, 1.0)],
)
def _(seed):
    return iso.sample(
        lambda x: 0.5 * jnp.sum(((x - jnp.array([NORTH, 448_262.0])) / 1.5) ** 2),
        iso.sgld(0.02),
        num_steps=40_000,
        num_chains=4,
        thinning=10,
        burn_in=1000,
        seed=seed,
        init=spread(np.array([NORTH, 448_262.0]), 2.0),
    )


@case(
    "offset coordinates sghmc careful",
    True,
    "coordinates of a thousand standard deviations, still fine in float32",
    normal_truths(0, 1000.0, 1.0, 1.0),
)
def _(seed):
    return iso.sample(
        lambda x: 0.5 * jnp.sum((x - jnp.array([1000.0, -500.0])) ** 2),
        iso.sghmc(0.02),
        num_steps=50_000,
        num_chains=4,
        thinning=20,
        burn_in=1000,
        seed=seed,
        init=spread(np.array([1000.0, -500.0]), 2.0),
    )


# Logistic regression with quadrature truth
log_x = rng.normal(size=(300, 2))
log_y = (rng.random(300) < special.expit(log_x @ np.array([1.2, -0.8]))).astype(float)
_g = np.linspace(-2.5, 3.0, 500)
_a, _b = np.meshgrid(_g, _g, indexing="ij")
_ll = -(_a**2 + _b**2) / 18
for _x, _y in zip(log_x, log_y, strict=False):
    _z = _a * _x[0] + _b * _x[1]
    _ll += _y * _z - np.logaddexp(0, _z)
_p = np.exp(_ll - _ll.max())
_p /= _p.sum()
LOG_TRUTHS = []
for _i, _v in enumerate((_a, _b)):
    m_ = float((_p * _v).sum())
    s_ = float(np.sqrt((_p * (_v - m_) ** 2).sum()))
    LOG_TRUTHS += [
        (f"mean {_i}", lambda x, i=_i, m=m_, s=s_: (x[i] - m) / s, 0.0),
        (f"var {_i}", lambda x, i=_i, m=m_, s=s_: ((x[i] - m) / s) ** 2, 1.0),
    ]
log_data = (jnp.asarray(log_x, jnp.float32), jnp.asarray(log_y, jnp.float32))


@functools.cache
def logistic(batch_size, **options):
    return iso.from_likelihood(
        lambda w, e: e[1] * (e[0] @ w) - jax.nn.softplus(e[0] @ w),
        lambda w: -jnp.sum(w**2) / 18,
        log_data,
        batch_size=batch_size,
        **options,
    )


@case("logistic sgld careful", True, "batches of 100 of 300 at a short step", LOG_TRUTHS)
def _(seed):
    return iso.sample(
        logistic(100),
        iso.sgld(4e-4),
        num_steps=80_000,
        num_chains=6,
        thinning=25,
        burn_in=4000,
        seed=seed,
        init=spread(np.zeros(2), 0.7),
    )


@case(
    "logistic sghmc variance overstated",
    False,
    "the variance of batches of 20 is taken off while batches hold 150",
    LOG_TRUTHS,
)
def _(seed):
    return iso.sample(
        logistic(150),
        iso.sghmc(1e-4, gradient_variance=500.0),
        num_steps=40_000,
        num_chains=6,
        thinning=10,
        burn_in=3000,
        seed=seed,
        init=spread(np.zeros(2), 0.7),
    )


# Unequal scales, d = 8
NEAR = np.array([0.3, 0.5, 0.8, 1.0, 1.3, 1.8, 2.4, 3.0])


def near_scaled(x):
    return 0.5 * jnp.sum((x / NEAR) ** 2)


@case(
    "near scales icsgld weights on few draws",
    False,
    "flattening with zeta = 4 leaves some fifty of 11,200 draws with the weight",
    normal_truths(0, 0.0, 0.3, 1.0) + normal_truths(7, 0.0, 3.0, 1.0),
)
def _(seed):
    return iso.sample(
        near_scaled,
        iso.icsgld(0.004, partition=(0.5, 40.0, 80), zeta=4.0, bounds=None),
        num_steps=60_000,
        num_chains=4,
        thinning=20,
        burn_in=4000,
        seed=seed,
        init=lambda key: 1.5 * jnp.asarray(NEAR, jnp.float32) * jax.random.normal(key, (8,)),
    )


@case(
    "near scales psgld frozen careful",
    True,
    "a frozen preconditioner on scales from 0.3 to 3",
    normal_truths(0, 0.0, 0.3, 1.0) + normal_truths(7, 0.0, 3.0, 1.0),
)
def _(seed):
    return iso.sample(
        near_scaled,
        iso.psgld(0.008, decay=0.999, freeze_after=20_000),
        num_steps=300_000,
        num_chains=10,
        thinning=100,
        burn_in=20_000,
        seed=seed,
        init=lambda key: 1.5 * jnp.asarray(NEAR, jnp.float32) * jax.random.normal(key, (8,)),
    )


# Hierarchical normal, d = 9
hier_y, hier_s, HIER_TAU = rng.normal(1.0, 1.5, size=8), np.linspace(0.5, 2.0, 8), 0.8
_H = np.zeros((9, 9))
_r = np.zeros(9)
_H[8, 8] = 1 / 25.0
for j in range(8):
    _H[j, j] += 1 / hier_s[j] ** 2 + 1 / HIER_TAU**2
    _H[8, 8] += 1 / HIER_TAU**2
    _H[j, 8] -= 1 / HIER_TAU**2
    _H[8, j] -= 1 / HIER_TAU**2
    _r[j] = hier_y[j] / hier_s[j] ** 2
hier_cov = np.linalg.inv(_H)
hier_mean = hier_cov @ _r
HIER_TRUTHS = normal_truths(8, hier_mean[8], float(np.sqrt(hier_cov[8, 8])), 1.0) + normal_truths(
    0, hier_mean[0], float(np.sqrt(hier_cov[0, 0])), 1.0
)
hier_yj, hier_sj = jnp.asarray(hier_y, jnp.float32), jnp.asarray(hier_s, jnp.float32)


def hierarchy(x):
    return (
        0.5 * jnp.sum(((x[:8] - hier_yj) / hier_sj) ** 2)
        + 0.5 * jnp.sum((x[:8] - x[8]) ** 2) / HIER_TAU**2
        + x[8] ** 2 / 50
    )


@case("hierarchy sghmc careful", True, "schools with known spread", HIER_TRUTHS)
def _(seed):
    return iso.sample(
        hierarchy,
        iso.sghmc(5e-3),
        num_steps=60_000,
        num_chains=6,
        thinning=20,
        burn_in=2000,
        seed=seed,
        init=spread(np.zeros(9), 1.5),
    )


# A square root of a mean, two modes, with batches
sq_y = rng.normal(1.2, 3.0, size=100)
SQ_MEAN, SQ_SD, sq_above = density_truths(
    lambda t: -0.5 * (t - 0.3) ** 2 - 0.5 * (100 * (t**2 - sq_y.mean()) ** 2) / 9.0, -3.0, 3.0
)
SQ_TRUTHS = [
    ("mean", lambda x: (x - SQ_MEAN) / SQ_SD, 0.0),
    ("var", lambda x: ((x - SQ_MEAN) / SQ_SD) ** 2, 1.0),
    ("prob right", lambda x: jnp.where(x > 0.0, 1.0, 0.0), sq_above(0.0)),
]


@functools.cache
def square(batch_size, **options):
    return iso.from_likelihood(
        lambda t, y: -0.5 * (y - t**2) ** 2 / 9.0,
        lambda t: -0.5 * (t - 0.3) ** 2,
        jnp.asarray(sq_y, jnp.float32),
        batch_size=batch_size,
        **options,
    )


@case(
    "square root resgld on halves",
    False,
    "swaps that read energies of halves of the data take mass from the lesser mode, while swaps on all data do not",
    SQ_TRUTHS,
)
def _(seed):
    return iso.sample(
        square(50),
        iso.resgld((5e-4, 8e-4, 1e-3), temperatures=(1.0, 3.5, 12.0)),
        num_steps=60_000,
        num_ladders=8,
        thinning=20,
        burn_in=4000,
        seed=seed,
        init=uniform((), -1.5, 1.5),
    )


@case(
    "square root resgld all data careful", True, "two modes of unequal mass, swaps on energies of all data", SQ_TRUTHS
)
def _(seed):
    return iso.sample(
        square(None),
        iso.resgld((5e-4, 8e-4, 1e-3), temperatures=(1.0, 3.5, 12.0)),
        num_steps=60_000,
        num_ladders=8,
        thinning=20,
        burn_in=4000,
        seed=seed,
        init=uniform((), -1.5, 1.5),
    )


# A positive scale
_gm, _gs = 1.5, float(np.sqrt(0.75))
POS_TRUTHS = [
    ("mean", lambda x: (x["scale"] - _gm) / _gs, 0.0),
    ("var", lambda x: ((x["scale"] - _gm) / _gs) ** 2, 1.0),
    ("prob", lambda x: jnp.where(x["scale"] > 2.0, 1.0, 0.0), float(stats.gamma.sf(2.0, 3.0, scale=0.5))),
]


@case("positive scale sgld careful", True, "a gamma variable through the library's transform", POS_TRUTHS)
def _(seed):
    problem = iso.transforms.constrain(
        lambda x: 2.0 * jnp.log(x["scale"]) - 2.0 * x["scale"] - 0.5 * x["shift"] ** 2,
        {"scale": iso.transforms.positive()},
    )

    def start(key):
        return {"scale": jnp.exp(jax.random.normal(key) * 0.7), "shift": jnp.array(0.5)}

    return iso.sample(
        problem, iso.sgld(0.01), num_steps=150_000, num_chains=6, thinning=25, burn_in=5000, seed=seed, init=start
    )
