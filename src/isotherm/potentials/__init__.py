"""Potentials: energies, log densities, likelihoods with data, and synthetic noise."""

from typing import TYPE_CHECKING

from isotherm.foundation.moved import moved
from isotherm.potentials.clients import ClientAverage, ClientsPotential, from_clients
from isotherm.potentials.energy import EnergyPotential, LogDensityPotential, from_energy, from_log_density
from isotherm.potentials.likelihood import LikelihoodPotential, from_likelihood
from isotherm.potentials.noise import NoisyPotential, with_noise
from isotherm.potentials.potential import Evaluation, Potential
from isotherm.potentials.reference import Given, Normal, Reference, with_reference
from isotherm.potentials.start import PerChain, per_chain
from isotherm.potentials.units import to_bayesian, to_standard

__all__ = [
    "ClientAverage",
    "ClientsPotential",
    "EnergyPotential",
    "Evaluation",
    "Given",
    "LikelihoodPotential",
    "LogDensityPotential",
    "NoisyPotential",
    "Normal",
    "PerChain",
    "Potential",
    "Reference",
    "from_clients",
    "from_energy",
    "from_likelihood",
    "from_log_density",
    "per_chain",
    "to_bayesian",
    "to_standard",
    "with_noise",
    "with_reference",
]

if not TYPE_CHECKING:
    _TO_NETWORKS = ("Gaussian", "Network", "NetworkPotential", "WeightDecay", "binary_cross_entropy", "cross_entropy")
    _TO_NETWORKS += ("from_equinox", "from_linen", "from_nnx", "squared_error")
    __getattr__ = moved(__name__, dict.fromkeys(_TO_NETWORKS, "isotherm.networks"))
