"""What is sampled: energies, log densities, likelihoods with data, and synthetic noise."""

from isotherm.potentials.energy import EnergyPotential, from_energy, from_log_density
from isotherm.potentials.likelihood import LikelihoodPotential, from_likelihood
from isotherm.potentials.noise import NoisyPotential, with_noise
from isotherm.potentials.potential import Evaluation, Potential

__all__ = [
    "EnergyPotential",
    "Evaluation",
    "LikelihoodPotential",
    "NoisyPotential",
    "Potential",
    "from_energy",
    "from_likelihood",
    "from_log_density",
    "with_noise",
]
