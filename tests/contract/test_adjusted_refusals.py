"""What a Metropolis test, a path or the evidence cannot use is refused, and what replaces it is named."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Partition
from isotherm.estimators import ControlVariate
from isotherm.exchange import EquiAcceptance, Exchange, Ladder
from isotherm.kernels import GHMC, MALA, SGLD, scaled, within
from isotherm.transforms import constrain, positive

ROWS = np.arange(12.0, dtype=np.float32)


def energy(x):
    return 0.5 * jnp.sum(x**2)


def log_density(x):
    return jnp.sum(-0.5 * x**2 - 0.5 * jnp.log(2.0 * jnp.pi))


def draw(key):
    return jax.random.normal(key, (1,))


def likelihood(**options):
    return iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, lambda m: jnp.sum(-0.5 * m**2), ROWS, **options)


def start(potential, sampler, init: Any = None, **options):
    init = jnp.zeros(1) if init is None else init
    return iso.sample(potential, sampler, num_steps=6, init=init, **options)


HOT = (1.0, 4.0, np.inf)
REFERENCED = iso.with_reference(energy, draw, log_density)
PATH = iso.reghmc(0.1, temperatures=HOT, path="reference")
NO_FUNCTION: Any = np.zeros(2)
NOISY = iso.with_noise(iso.from_energy(energy), energy_scale=1.0)
CONTOUR: Any = iso.csgld(0.1, partition=Partition(0.1, 0.5, 8)).coupling


def stepped_with_data():
    sampler = iso.mala(0.1)
    state = sampler.init(likelihood(), jnp.zeros(()))
    return sampler.step(jax.random.key(0), state, ROWS[:4])


CASES = {
    "mini-batches for mala": (
        lambda: start(likelihood(batch_size=4), iso.mala(0.1), jnp.zeros(())),
        "`potential` must be an exact energy for mala, whose Metropolis test needs one; got one with mini-batches or noise. "
        "Use `iso.sgld`, or all data in every iteration (`batch_size=None`).",
    ),
    "mini-batches for ghmc": (
        lambda: start(likelihood(batch_size=4), iso.ghmc(0.1), jnp.zeros(())),
        "Use `iso.sghmc`, or all data in every iteration (`batch_size=None`).",
    ),
    "mini-batches for reghmc": (
        lambda: start(likelihood(batch_size=4), iso.reghmc(0.1), jnp.zeros(())),
        "Use `iso.resghmc`, or all data in every iteration (`batch_size=None`).",
    ),
    "noise": (
        lambda: start(NOISY, iso.ghmc(0.1)),
        "`potential` must be an exact energy for ghmc, whose Metropolis test needs one; got one with mini-batches or noise.",
    ),
    "a kernel without a name": (
        lambda: start(NOISY, iso.Sampler(MALA(), 0.1)),
        "`potential` must be an exact energy for an adjusted kernel, whose Metropolis test needs one; got one with "
        "mini-batches or noise. Use `kernels.SGLD`",
    ),
    "streams": (
        lambda: start(likelihood(batch_size=12, is_streamed=True), iso.mala(0.1), jnp.zeros(())),
        "`potential` must be an exact energy for mala, whose Metropolis test needs one; got one with data that stream.",
    ),
    "contours": (
        lambda: start(energy, iso.Sampler(GHMC(), 0.1, coupling=CONTOUR)),
        "`coupling` must be one that flattens nothing, for an adjusted kernel; got Contour. Use `kernels.SGHMC`.",
    ),
    "control variates": (
        lambda: start(likelihood(), iso.Sampler(MALA(), 0.1, estimator=ControlVariate(10)), jnp.zeros(())),
        "`estimator` must be ",
    ),
    "no temperature": (
        lambda: iso.mala(0.1, temperature=0.0),
        "`temperature` must be a finite real number above 0; got 0.0.",
    ),
    "no temperature of a composition": (
        lambda: iso.Sampler(GHMC(), 0.1, 0.0),
        "`temperature` must be a finite real number above 0; got 0.0.",
    ),
    "cold ladder": (
        lambda: iso.reghmc(0.1, temperatures=(0.0, 1.0)),
        "`temperatures` must be a finite real number above 0; got 0.0.",
    ),
    "friction": (
        lambda: iso.ghmc(0.1, friction=0.0),
        "`friction` must be a finite real number above 0 and at most 1; got 0.0.",
    ),
    "reflection": (
        lambda: iso.ghmc(0.1, box=(-1.0, 1.0, "reflect")),
        "`box` must be (low, high) for GHMC, which rejects proposals; got (-1.0, 1.0, 'reflect').",
    ),
    "dense in a box that reflects": (
        lambda: scaled(within(SGLD(), (-1.0, 1.0, "reflect")), np.eye(2), is_dense=True),
        "`factor` must be diagonal for a box that reflects; got a matrix. Use `box=(low, high)`.",
    ),
    "a matrix that is none": (
        lambda: scaled(GHMC(), np.ones(2), is_dense=True),
        "`factor` must be a square matrix; got shape (2,). Leave out `is_dense` for a diagonal.",
    ),
    "data of a step": (
        stepped_with_data,
        "`data` must be None for an adjusted kernel, whose energies are those of the last step's data; got ",
    ),
    "a path without a reference": (
        lambda: start(energy, iso.reghmc(0.1, path="reference")),
        '`potential` must be one with a reference for `path="reference"`; got EnergyPotential. Give it one: '
        "`iso.with_reference(potential, draw, log_density)`.",
    ),
    "a path of another kind": (
        lambda: iso.reghmc(0.1, path="prior"),
        "`path` must be one of 'temperature', 'reference'; got 'prior'.",
    ),
    "a reference without its path": (
        lambda: start(REFERENCED, iso.reghmc(0.1)),
        '`path` must be "reference" for a potential with a reference; got "temperature". Write `path="reference"`, or sample '
        "the potential without its reference.",
    ),
    "infinity without a reference": (
        lambda: start(
            likelihood(coupling_includes_prior=False),
            iso.reghmc(0.1, temperatures=HOT, path="reference"),
            jnp.zeros(()),
        ),
        "`temperatures` must be finite for a prior that cannot be drawn; got infinity. Give a finite one, or a reference: "
        "`iso.with_reference(potential, draw, log_density)`.",
    ),
    "infinity without a path": (
        lambda: iso.reghmc(0.1, temperatures=HOT),
        '`temperatures` must be finite unless a path starts at a reference; got infinity. Write `path="reference"`, for a '
        "potential with a reference (`iso.with_reference`); or a finite one.",
    ),
    "infinity in a ladder": (
        lambda: Exchange(Ladder((0.1, 0.1), (1.0, np.inf))),
        "`temperatures` must be finite unless a path starts at a reference; got infinity.",
    ),
    "infinity as an end": (
        lambda: iso.reghmc((0.1, 0.1), temperatures=(1.0, np.inf), num_replicas=5, path="reference"),
        "`temperatures` must be a finite real number above 0; got inf. Give all rungs, such as "
        "`temperatures=(1.0, 4.0, 16.0, jnp.inf)`.",
    ),
    "infinity twice": (
        lambda: iso.reghmc(0.1, temperatures=(1.0, np.inf, np.inf), path="reference"),
        "`temperatures` must be strictly rising from the target to the hottest rung; got (1.0, inf, inf).",
    ),
    "another temperature": (
        lambda: start(REFERENCED, iso.reghmc(0.1, temperatures=(2.0, 4.0, np.inf), path="reference")),
        "`temperatures` must be (1.0, ..., infinity) for draws from a reference, with `temperature_factor=1.0`; got 2. Divide "
        "the energy by the temperature instead.",
    ),
    "a temperature that changes": (
        lambda: start(
            REFERENCED,
            iso.reghmc(0.1, temperatures=HOT, path="reference", temperature_factor=lambda k: 1.0 + 1.0 / (1.0 + k)),
        ),
        "got a schedule.",
    ),
    "a box on a path": (
        lambda: start(REFERENCED, iso.reghmc(0.1, temperatures=HOT, path="reference", box=(-9.0, 9.0))),
        "`box` must be left out for draws from a reference, which would leave it; got a box. Give the potential an infinite "
        "energy outside, or use `transforms.interval(low, high)` for a parameter.",
    ),
    "a search on a path": (
        lambda: iso.reghmc(0.1, path="reference", ladder="auto"),
        "`ladder` must be None for `path=\"reference\"`; got 'auto'. A pilot finds no rungs above finite temperatures: give "
        "them, such as `temperatures=(1.0, 4.0, 16.0, jnp.inf)`.",
    ),
    "adapted infinity": (
        lambda: iso.reghmc(0.1, temperatures=HOT, path="reference", adaptation=EquiAcceptance(0.1, of="temperature")),
        "`adaptation` must be None for an infinite temperature; got EquiAcceptance. Leave out `adaptation`",
    ),
    "draws of another shape": (
        lambda: start(iso.with_reference(energy, lambda key: jax.random.normal(key, (3,)), log_density), PATH),
        "`draw` must be a function that returns positions of shape (1,), as `init`; got (3,). Return the same tree.",
    ),
    "draws of another structure": (
        lambda: start(iso.with_reference(energy, lambda key: {"x": draw(key)}, log_density), PATH),
        "`draw` must be a function that returns positions of shape (1,), as `init`; got {'x': (1,)}.",
    ),
    "draws without a density": (
        lambda: start(
            iso.with_reference(energy, draw, lambda x: jnp.sum(jnp.where(x > 0.0, log_density(x), -jnp.inf))), PATH
        ),
        "`log_density` must be finite at every position that `draw` returns; got -inf at ",
    ),
    "draws that fail": (
        lambda: start(iso.with_reference(energy, lambda key: key.nothing, log_density), PATH),
        "`draw` must be a function of a key that returns a position; got AttributeError",
    ),
    "a reference that is none": (
        lambda: iso.with_reference(energy, NO_FUNCTION, log_density),
        "`draw` must be a function; got ",
    ),
    "no density": (
        lambda: iso.with_reference(energy, draw),
        "`log_density` must be given for an energy function, whose prior is unknown; got None. Give the normalized log density "
        "of the draws.",
    ),
    "advice on a path": (
        lambda: iso.advise(REFERENCED, PATH, num_steps=10, init=jnp.zeros(1)),
        '`sampler` must be one with `path="temperature"`; got a path from a reference. Run it, and look at '
        '`run.stats["swap_rate"]`',
    ),
    "the evidence of a chain": (
        lambda: start(energy, iso.mala(0.1)).log_evidence(),
        "`run` must be one along a path from a reference that can be drawn; got mala. Use `iso.with_reference` and "
        "`path='reference'` of an exchange sampler; or `log_z_ratio` of a contour sampler.",
    ),
    "the evidence of a ladder": (
        lambda: start(energy, iso.reghmc(0.1)).log_evidence(),
        "`run` must be one along a path from a reference that can be drawn; got reghmc.",
    ),
    "the evidence of half a path": (
        lambda: start(REFERENCED, iso.reghmc(0.1, temperatures=(1.0, 4.0), path="reference")).log_evidence(),
        "`run` must be one whose hottest rung is the reference; got one that ends at 4. End the ladder with an infinite "
        "temperature, which draws from the reference.",
    ),
    "the evidence under noise": (
        lambda: start(
            iso.with_reference(NOISY, draw, log_density), iso.resgld(0.1, temperatures=HOT, path="reference")
        ).log_evidence(),
        "`run` must be one with exact energies; got one with noisy ones, which would bias log Z.",
    ),
}


@pytest.mark.filterwarnings("ignore::isotherm.foundation.errors.DivergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    action, message = CASES[name]
    with pytest.raises(ValueError, match=re.escape(message)):
        action()


def test_a_reference_of_constrained_parameters_is_checked_where_it_is_drawn():
    flat = iso.with_reference(
        lambda x: x["rate"], lambda key: {"rate": jax.random.exponential(key)}, lambda x: -x["rate"]
    )
    run = start(constrain(flat, {"rate": positive()}), PATH, {"rate": np.ones((), np.float32)})
    assert np.all(np.asarray(run.draws["rate"]) > 0.0)


def test_infinite_energies_of_draws_are_rejected_and_counted():
    """Where the target has no density, draws of the reference stay on their rung, and the evidence is that of the rest."""
    bounded = iso.with_reference(lambda x: jnp.sum(jnp.where(x > 0.0, -log_density(x), jnp.inf)), draw, log_density)
    sampler = iso.reghmc(0.3, temperatures=(1.0, np.inf), path="reference")
    run = iso.sample(bounded, sampler, num_steps=4_000, num_runs=4, init=np.ones(1, np.float32))
    assert np.all(np.asarray(run.draws) > 0.0)
    found = run.log_evidence()
    assert abs(found.mean - np.log(0.5)) < 4.0 * found.std_error
    assert found.std_error < 0.05
