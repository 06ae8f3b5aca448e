"""What is sampled: energies, log densities, likelihoods with data, neural networks, and synthetic noise."""

from isotherm.potentials.energy import EnergyPotential, LogDensityPotential, from_energy, from_log_density
from isotherm.potentials.equinox_networks import from_equinox
from isotherm.potentials.flax_networks import from_linen, from_nnx
from isotherm.potentials.likelihood import LikelihoodPotential, from_likelihood
from isotherm.potentials.losses import Gaussian, binary_cross_entropy, cross_entropy, squared_error
from isotherm.potentials.networks import Network, NetworkPotential, WeightDecay
from isotherm.potentials.noise import NoisyPotential, with_noise
from isotherm.potentials.potential import Evaluation, Potential
from isotherm.potentials.units import to_bayesian, to_standard

__all__ = [
    "EnergyPotential",
    "Evaluation",
    "Gaussian",
    "LikelihoodPotential",
    "LogDensityPotential",
    "Network",
    "NetworkPotential",
    "NoisyPotential",
    "Potential",
    "WeightDecay",
    "binary_cross_entropy",
    "cross_entropy",
    "from_energy",
    "from_equinox",
    "from_likelihood",
    "from_linen",
    "from_log_density",
    "from_nnx",
    "squared_error",
    "to_bayesian",
    "to_standard",
    "with_noise",
]
