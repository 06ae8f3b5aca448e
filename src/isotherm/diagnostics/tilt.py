"""How far the step size and the noise of gradients move the distribution of a run from what was asked for, to first order.

Chains at step epsilon follow pi(x) (1 + s(x)) instead of pi, up to second order, and with it every mean moves by Cov(f, s): the
tilt s is all that must be known. With D the covariance that the step adds to a chain's own,

    s(x) = g' D g / (2 tau^2) - tr(D H) / tau + constant,       g, H the gradient and the Hessian of U at x,

which for Langevin steps without gradient noise, D = epsilon tau / 2, is epsilon (|g|^2 / (4 tau) - tr(H) / 2): the first order of
the stationary distribution of Euler's scheme, exact whatever the form of U. Gradient noise of covariance V adds the D that solves
H D + D H = epsilon V. Both depend on the kernel by a factor each (`StepErrors`). Coordinates are in units of the step,
sqrt(epsilon G), with G a preconditioner, so that epsilon is 1 below.

Where gradients are noisy, products of them would drown s in noise; s is then that of a normal distribution of the draws' covariance
C, (x - m)' C^-1 D C^-1 (x - m) / 2, in every well with m and C of its own: what noise does to the masses of wells is not known.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from isotherm.run.bias import NUM_GROUPS, contradicted, weights_left_out

# The share of what holds the draws, below which a mean Hessian says nothing of them.
_MIN_HOLD = 0.1


class Probes(NamedTuple):
    """What was measured at draws, in units of the step: arrays of shape (chain, draw, d).

    Attributes:
        position: the draw.
        gradient: with the multiplier of the coupling.
        other_gradient: the same on an independent batch.
        signs: z, random signs.
        product: H z.
    """

    position: np.ndarray
    gradient: np.ndarray
    other_gradient: np.ndarray
    signs: np.ndarray
    product: np.ndarray


class Epoch(NamedTuple):
    """A pass over N examples in shuffled batches of n, of which the last holds what is left over."""

    num_data: int
    batch_size: int

    @property
    def length(self) -> int:
        """How many batches there are."""
        return -(-self.num_data // self.batch_size)

    @property
    def last_size(self) -> int:
        """How many examples the last batch holds."""
        return self.num_data - (self.length - 1) * self.batch_size


class Dynamics(NamedTuple):
    """What of a sampler decides its bias.

    Attributes:
        temperature: tau.
        step_errors: of the kernel, (curvature, noise): the covariance that each adds, over what it adds to Langevin steps. None has
            the covariance measured: it is what makes the mean of g g' differ from tau times that of H.
        epoch: whose batches take back each other's noise; None for batches that are independent.
        phases: how many batches of an epoch the draws had seen.
        assumed_noise: the variance of gradients that the kernel takes off what it injects, shape (d,) or 0.
        is_exact: whether gradients have no noise.
        has_walls: whether chains are kept in a box.
    """

    temperature: float
    step_errors: tuple[float, float] | None
    epoch: Epoch | None
    phases: np.ndarray
    assumed_noise: Any
    is_exact: bool
    has_walls: bool


def tilts_of(
    probes: Probes, wells: np.ndarray, log_weights: np.ndarray, dynamics: Dynamics
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The tilt s at every draw, up to a constant: from all draws, and with each group of them left out; (1 + G, chain, draw).

    Then the excess heat of every coordinate, likewise (1 + G, d), and whether the tilt was measured: because nobody knows how the
    kernel steps, or because draws contradict it.
    """
    probes = Probes(*(np.where(np.isfinite(log_weights)[..., None], part, 0.0) for part in probes))
    known, measured, heats = [], [], []
    for weights in weights_left_out(log_weights):
        around = _local_moments(probes, weights, dynamics)
        tilt = functools.partial(_tilt, probes, wells, weights, around, dynamics)
        measured.append(tilt(_measured_covariance(around, dynamics)))
        added = np.zeros_like(around.forces)
        if dynamics.step_errors is not None:
            added = _added_covariance(around, dynamics)
            known.append(tilt(added))
        heats.append(_excess_heat(around, added, dynamics))
    heats = np.stack(heats) if dynamics.is_exact and not dynamics.has_walls else np.zeros((1 + NUM_GROUPS, 1))
    is_measured = dynamics.step_errors is None or contradicted(heats) is not None
    return np.stack(measured if is_measured else known), heats, is_measured


def leaf_heats_of(virials: np.ndarray, sizes: np.ndarray, log_weights: np.ndarray, dynamics: Dynamics) -> np.ndarray:
    """By which share the temperature of each leaf is higher than that of the run, as `Bias.leaf_heats`.

    Under exp(-U / tau) the mean of (x - c) . g over a leaf of d numbers is d tau, wherever c is and whatever U looks like, if g is
    seen on batches of its own. Summed over many numbers it is known far better than the spread of any of them.

    Args:
        virials: of the leaves at every draw, shape (chain, draw, leaves).
        sizes: of the whole position, and of the leaves.
        log_weights: of the draws.
        dynamics: of the sampler.
    """
    if dynamics.has_walls:
        return np.zeros((1 + NUM_GROUPS, len(sizes)))
    virials = np.where(np.isfinite(log_weights)[..., None], virials, 0.0)
    found = np.einsum("gcs,csl->gl", weights_left_out(log_weights), virials)
    both = np.concatenate([found.sum(axis=1, keepdims=True), found], axis=1)
    wanted = dynamics.temperature * sizes
    return np.where(wanted > 0, both / np.where(wanted > 0, wanted, 1.0) - 1.0, 0.0)


class LocalMoments(NamedTuple):
    """Means over the draws, in the basis in which the mean Hessian is diagonal.

    Attributes:
        mean: of positions, in the basis of the user.
        covariance: of positions.
        basis: the eigenvectors of the Hessian, in columns.
        rates: its eigenvalues; where they are too low to hold the draws, what would.
        forces: of products of two gradients.
        noise: of the gradients.
    """

    mean: np.ndarray
    covariance: np.ndarray
    basis: np.ndarray
    rates: np.ndarray
    forces: np.ndarray
    noise: np.ndarray


def _local_moments(probes: Probes, weights: np.ndarray, dynamics: Dynamics) -> LocalMoments:
    position, one, other, signs, product = probes
    mean = np.einsum("cs,csi->i", weights, position)
    # What takes z to H z, by least squares: exact for a Hessian that is the same everywhere.
    gram = _mean_product(weights, signs, signs) + 1e-9 * np.eye(len(mean))
    hessian = np.linalg.solve(gram, _mean_product(weights, signs, product))
    rates, basis = np.linalg.eigh(0.5 * (hessian + hessian.T))
    turned = (position - mean) @ basis
    covariance = _mean_product(weights, turned, turned)
    # A direction in which the energy is flat or curves downwards on average is held by what holds its draws. Elsewhere the mean
    # Hessian stays: it is at least tau over the variance, and below that the draws are too cold, which must be seen.
    holding = dynamics.temperature / np.maximum(np.diag(covariance), 1e-30)
    rates = np.where(rates > _MIN_HOLD * holding, rates, holding)
    forces = _mean_product(weights, one @ basis, other @ basis)
    noise = 0.5 * _mean_product(weights, one - other, one - other)
    return LocalMoments(mean, covariance, basis, rates, 0.5 * (forces + forces.T), basis.T @ noise @ basis)


def _mean_product(weights: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    number = left.shape[-1]
    return (weights[..., None] * left).reshape(-1, number).T @ right.reshape(-1, number)


def _tilt(
    probes: Probes,
    wells: np.ndarray,
    weights: np.ndarray,
    around: LocalMoments,
    dynamics: Dynamics,
    added: np.ndarray,
) -> np.ndarray:
    """The tilt of draws whose covariance is too large by `added`, in the basis of the Hessian."""
    basis, tau = around.basis, dynamics.temperature
    if not dynamics.is_exact and np.max(wells) == 0:
        # The covariance of the draws has the added one in it.
        scores = (probes.position - around.mean) @ basis @ np.linalg.pinv(around.covariance, hermitian=True)
        return 0.5 * np.sum((scores @ added) * scores, axis=-1)
    if not dynamics.is_exact:
        return _tilt_in_wells(probes.position @ basis, wells, weights, around.rates / tau, added)
    heat = np.maximum(tau + around.rates * np.diag(added), 0.1 * tau)
    forces = (probes.gradient @ basis) / heat
    bent = np.sum((probes.signs @ basis @ added) * (probes.product @ basis) / heat, axis=-1)
    return 0.5 * np.sum((forces @ added) * forces, axis=-1) - bent


def _tilt_in_wells(
    position: np.ndarray, wells: np.ndarray, weights: np.ndarray, precision: np.ndarray, added: np.ndarray
) -> np.ndarray:
    """The tilt of draws in wells that are far apart; `precision` is what the mean Hessian says of one well, its least spread."""
    found = np.zeros(wells.shape)
    for well in range(np.max(wells) + 1):
        share = np.where(wells == well, weights, 0.0)
        if not share.sum() > 0:
            continue
        share = share / share.sum()
        centered = position - np.einsum("cs,csi->i", share, position)
        scaled = centered * np.sqrt(precision)
        spreads, turn = np.linalg.eigh(_mean_product(share, scaled, scaled))
        scores = (scaled @ turn / np.maximum(spreads, 1.0)) @ turn.T * np.sqrt(precision)
        tilt = 0.5 * np.sum((scores @ added) * scores, axis=-1)
        found = np.where(wells == well, tilt - np.sum(share * tilt), found)
    return found


def _measured_covariance(around: LocalMoments, dynamics: Dynamics) -> np.ndarray:
    """What the draws have too much: under the distribution that was asked for, the mean of g g' is tau times that of H."""
    excess = around.forces - dynamics.temperature * np.diag(around.rates)
    return excess / around.rates[:, None] / around.rates[None, :]


def _excess_heat(around: LocalMoments, added: np.ndarray, dynamics: Dynamics) -> np.ndarray:
    """By how much the temperatures of the coordinates, g^2 / H, are higher than expected, over what is expected."""
    expected = dynamics.temperature * np.diag(around.rates) + around.rates[:, None] * added * around.rates[None, :]
    turn = around.basis
    excess = np.einsum("ik,kl,il->i", turn, around.forces - expected, turn)
    return excess / np.einsum("ik,kl,il->i", turn, expected, turn)


def _added_covariance(around: LocalMoments, dynamics: Dynamics) -> np.ndarray:
    """What a kernel adds, to first order in its step."""
    assert dynamics.step_errors is not None
    by_curvature, by_noise = dynamics.step_errors
    rates = around.rates
    sums = rates[:, None] + rates[None, :]
    heard = 1.0 if dynamics.epoch is None else epoch_noise_factor(rates * by_noise, dynamics.epoch, dynamics.phases)
    root = np.sqrt(heard * np.ones_like(rates))
    # What is not injected for the sake of noise is missing in every step, however much of the noise an epoch takes back.
    left_out = around.basis.T @ np.diag(dynamics.assumed_noise * np.ones(len(rates))) @ around.basis
    added = by_noise * (around.noise * root[:, None] * root[None, :] - left_out) / sums
    added += np.diag(np.full(len(rates), 0.5 * by_curvature * dynamics.temperature))
    # Exact for normal distributions up to the step size at which chains diverge.
    return added / np.maximum(1.0 - 0.25 * by_curvature * sums, 0.05)


def epoch_noise_factor(rates: np.ndarray, epoch: Epoch, phases: np.ndarray) -> np.ndarray:
    """The variance that noise of shuffled epochs gives draws, over that of independent batches of the full size.

    Means of batches of sizes n_b and n_c that share no example have the covariance -1 / N, and each the variance 1 / n_b - 1 / N,
    in units of that of an example: with batches of one size, noises of an epoch sum to zero. A chain that forgets within an epoch
    (rates of a step well above one over its length) does not notice; one that is slower hears next to nothing, least of all in
    draws at the end of an epoch; a short last batch is heard, since the others do not make up for all of it.
    """
    if epoch.length <= 1:
        return np.zeros_like(rates)
    logs = np.log1p(-np.clip(rates, 1e-9, 1 - 1e-9))
    unit = 1 / epoch.batch_size - 1 / epoch.num_data

    def variance(number):
        """That of the noise of the first `number` batches of an epoch."""
        squares = np.expm1(2 * number * logs) / np.expm1(2 * logs)
        total = np.expm1(number * logs) / np.expm1(logs)
        extra = 1 / epoch.last_size - 1 / epoch.batch_size if number == epoch.length else 0.0
        return (squares / epoch.batch_size + extra - total**2 / epoch.num_data) / unit

    seen, counts = np.unique(phases, return_counts=True)
    earlier = variance(epoch.length) / -np.expm1(2 * epoch.length * logs)
    found = [variance(phase) + np.exp(2 * phase * logs) * earlier for phase in seen]
    return np.maximum(np.average(found, axis=0, weights=counts) * -np.expm1(2 * logs), 0.0)


def rates_of(probes: Probes) -> np.ndarray:
    """|H z|^2 / |z' H z| at every draw: an average of the Hessian's eigenvalues in which the large ones count most."""
    squares = np.sum(probes.product**2, axis=-1)
    return squares / np.maximum(np.abs(np.sum(probes.signs * probes.product, axis=-1)), np.sqrt(squares) + 1e-30)


def largest_drift(probes: Probes, is_seen: np.ndarray) -> float:
    """The largest mean square of a coordinate's gradient, without what noise adds, over the draws at which it is known."""
    squares = np.where(is_seen[..., None], probes.gradient * probes.other_gradient, 0.0)
    return float(np.max(np.abs(np.sum(squares, axis=(0, 1))))) / np.sum(is_seen)
