"""Sampling and minimising energies with many wells, when only mini-batch energies and gradients are affordable.

    import isotherm as iso

    run = iso.sample(energy, iso.sgld(step_size=0.01), num_steps=100_000, init=start)

Conventions: U(x) = -log prior(x) - (N/n) * sum of log likelihoods, density exp(-U(x) / temperature), arrays with axes (run, chain,
draw, ...).
"""

from isotherm import potentials, schedules
from isotherm.errors import DivergenceError, DivergenceWarning
from isotherm.potentials import Potential, from_energy, from_likelihood, from_log_density, with_noise
from isotherm.samplers import cycsghmc, cycsgld, msgd, psgld, sgd, sghmc, sgld, svgd
from isotherm.sampling import Run, Sampler, load, per_chain, resume, sample

__version__ = "0.1.0"

__all__ = [
    "DivergenceError",
    "DivergenceWarning",
    "Potential",
    "Run",
    "Sampler",
    "cycsghmc",
    "cycsgld",
    "from_energy",
    "from_likelihood",
    "from_log_density",
    "load",
    "msgd",
    "per_chain",
    "potentials",
    "psgld",
    "resume",
    "sample",
    "schedules",
    "sgd",
    "sghmc",
    "sgld",
    "svgd",
    "with_noise",
]
