"""How the step size and gradient noise move the distribution of a run, to first order.

Chains at step epsilon follow pi(x) (1 + s(x)) instead of pi, up to second order, so that every mean moves by Cov(f, s) with the
tilt s. With D the covariance that the step adds to a chain's own,

    s(x) = g' D g / (2 tau^2) - tr(D H) / tau + constant,       g, H the gradient and the Hessian of U at x,

which for Langevin steps without gradient noise, D = epsilon tau / 2, is epsilon (|g|^2 / (4 tau) - tr(H) / 2): the first order of
the stationary distribution of Euler's scheme, for any U. Gradient noise of covariance V adds the D that solves
H D + D H = epsilon V. Both depend on the kernel by a factor each (`StepErrors`). Coordinates are in units of the step,
sqrt(epsilon G), with G a preconditioner, and energies in units of tau, so that epsilon and tau are 1 below.

Noisy gradients would drown products of them. s is then that of a normal distribution with the mean m and covariance C of the draws,
(x - m)' C^-1 D C^-1 (x - m) / 2, separately in every well: what noise does to the weights of wells is unknown.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from isotherm.run.bias import NUM_GROUPS, contradicted, weights_left_out

# A mean Hessian below this share of the inverse variance of the draws is replaced by that.
_MIN_HOLD = 0.1


class Probes(NamedTuple):
    """Measurements at draws, in units of the step: arrays of shape (chain, draw, d)."""

    position: np.ndarray
    gradient: np.ndarray  # With the multiplier of the coupling.
    other_gradient: np.ndarray  # The same on an independent batch.
    signs: np.ndarray  # z, random signs.
    product: np.ndarray  # H z.


class Epoch(NamedTuple):
    """A pass over N examples in shuffled batches of n, of which the last may be smaller."""

    num_data: int
    batch_size: int

    @property
    def length(self) -> int:
        """The number of batches."""
        return -(-self.num_data // self.batch_size)

    @property
    def last_size(self) -> int:
        """The size of the last batch."""
        return self.num_data - (self.length - 1) * self.batch_size


class Dynamics(NamedTuple):
    """Properties of a sampler that determine its bias."""

    # Of the kernel, (curvature, noise): the covariance that each adds, over what it adds to Langevin steps. If None, the covariance
    # is measured as the difference between the means of g g' and H.
    step_errors: tuple[float, float] | None
    epoch: Epoch | None  # Of shuffled batches, whose noise is anticorrelated; None for independent batches.
    phases: np.ndarray  # How many batches of their epoch the draws had seen.
    assumed_noise: Any  # The gradient variance that the kernel subtracts from the injected noise, shape (d,) or 0.
    is_exact: bool  # Whether gradients have no noise.
    has_walls: bool  # Whether chains are kept in a box.
    # Leaves and coordinates around a circle, where means of x g have a term at the cut, and the mean Hessian may be near zero.
    periodic_leaves: Any = False
    periodic_coordinates: Any = False


def tilts_of(
    probes: Probes, wells: np.ndarray, log_weights: np.ndarray, dynamics: Dynamics
) -> tuple[np.ndarray, np.ndarray, bool]:
    """`Bias.tilts`, `Bias.heats` and `Bias.is_measured`: whether the kernel has no theory, or the draws contradict it."""
    probes = Probes(*(np.where(np.isfinite(log_weights)[..., None], part, 0.0) for part in probes))
    known, measured, heats = [], [], []
    for weights in weights_left_out(log_weights):
        around = _local_moments(probes, weights)
        tilt = functools.partial(_tilt, probes, wells, weights, around, dynamics)
        measured.append(tilt(_measured_covariance(around)))
        added = np.zeros_like(around.forces)
        if dynamics.step_errors is not None:
            added = _added_covariance(around, dynamics)
            known.append(tilt(added))
        heats.append(_excess_heat(around, added))
    heats = np.stack(heats) if dynamics.is_exact and not dynamics.has_walls else np.zeros((1 + NUM_GROUPS, 1))
    heats = np.where(dynamics.periodic_coordinates, 0.0, heats)
    is_measured = dynamics.step_errors is None or contradicted(heats) is not None
    return np.stack(measured if is_measured else known), heats, is_measured


def leaf_heats_of(virials: np.ndarray, sizes: np.ndarray, log_weights: np.ndarray, dynamics: Dynamics) -> np.ndarray:
    """`Bias.leaf_heats`, from virials (chain, draw, leaves) and sizes of the whole position and of its leaves.

    Under exp(-U) the mean of (x - c) . g over a leaf of d numbers is d, for any c and U, if g is on an independent batch.
    Summed over many numbers it is far more precise than the spread of any of them.
    """
    if dynamics.has_walls:
        return np.zeros((1 + NUM_GROUPS, len(sizes)))
    virials = np.where(np.isfinite(log_weights)[..., None], virials, 0.0)
    found = np.einsum("gcs,csl->gl", weights_left_out(log_weights), virials)
    found = np.where(dynamics.periodic_leaves, sizes[1:], found)
    both = np.concatenate([found.sum(axis=1, keepdims=True), found], axis=1)
    return np.where(sizes > 0, both / np.maximum(sizes, 1) - 1.0, 0.0)


class LocalMoments(NamedTuple):
    """Means over the draws, in the eigenbasis of the mean Hessian."""

    mean: np.ndarray  # Of positions, in the original basis.
    covariance: np.ndarray  # Of positions.
    basis: np.ndarray  # The eigenvectors of the Hessian, in columns.
    rates: np.ndarray  # Its eigenvalues, or the inverse variance of the draws where they are too low.
    forces: np.ndarray  # Of products of two gradients.
    noise: np.ndarray  # Covariance of gradient noise.


def _local_moments(probes: Probes, weights: np.ndarray) -> LocalMoments:
    position, one, other, signs, product = probes
    mean = np.einsum("cs,csi->i", weights, position)
    # The least-squares map from z to H z: exact for a constant Hessian.
    gram = _mean_product(weights, signs, signs) + 1e-9 * np.eye(len(mean))
    hessian = np.linalg.solve(gram, _mean_product(weights, signs, product))
    rates, basis = np.linalg.eigh(0.5 * (hessian + hessian.T))
    turned = (position - mean) @ basis
    covariance = _mean_product(weights, turned, turned)
    # If the energy is flat or concave on average along a direction, use the draws. Elsewhere keep the mean Hessian, which is at
    # least the inverse variance: draws that are too cold must be seen.
    holding = 1.0 / np.maximum(np.diag(covariance), 1e-30)
    rates = np.where(rates > _MIN_HOLD * holding, rates, holding)
    forces = _mean_product(weights, one @ basis, other @ basis)
    noise = 0.5 * _mean_product(weights, one - other, one - other)
    return LocalMoments(mean, covariance, basis, rates, 0.5 * (forces + forces.T), basis.T @ noise @ basis)


def _mean_product(weights: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    number = left.shape[-1]
    return (weights[..., None] * left).reshape(-1, number).T @ right.reshape(-1, number)


def _tilt(
    probes: Probes, wells: np.ndarray, weights: np.ndarray, around: LocalMoments, dynamics: Dynamics, added: np.ndarray
) -> np.ndarray:
    """The tilt of draws whose covariance is too large by `added`, in the eigenbasis of the Hessian."""
    basis = around.basis
    if not dynamics.is_exact and np.max(wells) == 0:
        # The covariance of the draws includes the added one.
        scores = (probes.position - around.mean) @ basis @ np.linalg.pinv(around.covariance, hermitian=True)
        return 0.5 * np.sum((scores @ added) * scores, axis=-1)
    if not dynamics.is_exact:
        return _tilt_in_wells(probes.position @ basis, wells, weights, around.rates, added)
    heat = np.maximum(1.0 + around.rates * np.diag(added), 0.1)
    forces = (probes.gradient @ basis) / heat
    bent = np.sum((probes.signs @ basis @ added) * (probes.product @ basis) / heat, axis=-1)
    return 0.5 * np.sum((forces @ added) * forces, axis=-1) - bent


def _tilt_in_wells(
    position: np.ndarray, wells: np.ndarray, weights: np.ndarray, precision: np.ndarray, added: np.ndarray
) -> np.ndarray:
    """The tilt of draws in wells that are far apart; `precision`, from the mean Hessian, bounds the spread of a well from below."""
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


def _measured_covariance(around: LocalMoments) -> np.ndarray:
    """The excess covariance of the draws: under the target, the means of g g' and H are equal."""
    return (around.forces - np.diag(around.rates)) / around.rates[:, None] / around.rates[None, :]


def _excess_heat(around: LocalMoments, added: np.ndarray) -> np.ndarray:
    """The relative excess of the temperatures of the coordinates, g^2 / H, over what is expected."""
    expected = np.diag(around.rates) + around.rates[:, None] * added * around.rates[None, :]
    turn = around.basis
    excess = np.einsum("ik,kl,il->i", turn, around.forces - expected, turn)
    return excess / np.einsum("ik,kl,il->i", turn, expected, turn)


def _added_covariance(around: LocalMoments, dynamics: Dynamics) -> np.ndarray:
    """The covariance that a kernel adds, to first order in its step."""
    assert dynamics.step_errors is not None
    by_curvature, by_noise = dynamics.step_errors
    rates = around.rates
    sums = rates[:, None] + rates[None, :]
    factor = 1.0 if dynamics.epoch is None else epoch_noise_factor(rates * by_noise, dynamics.epoch, dynamics.phases)
    root = np.sqrt(factor * np.ones_like(rates))
    # The noise that is not injected is missing in every step, however much noise cancels over an epoch.
    left_out = around.basis.T @ np.diag(dynamics.assumed_noise * np.ones(len(rates))) @ around.basis
    added = by_noise * (around.noise * root[:, None] * root[None, :] - left_out) / sums
    added += np.diag(np.full(len(rates), 0.5 * by_curvature))
    # Exact for normal distributions up to the step size at which chains diverge.
    return added / np.maximum(1.0 - 0.25 * by_curvature * sums, 0.05)


def epoch_noise_factor(rates: np.ndarray, epoch: Epoch, phases: np.ndarray) -> np.ndarray:
    """The variance that shuffled batches add to the draws, over that of independent batches of the full size.

    Means of batches of sizes n_b and n_c without a common example have the covariance -1 / N, and each the variance
    1 / n_b - 1 / N, in units of that of an example: with batches of one size, the noise of an epoch sums to zero. The factor is 1
    for chains that forget within an epoch (rates per step well above 1 / length), and near zero for slower ones, least for draws at
    the end of an epoch. A short last batch raises it, because the others do not fully cancel its noise.
    """
    if epoch.length <= 1:
        return np.zeros_like(rates)
    logs = np.log1p(-np.clip(rates, 1e-9, 1 - 1e-9))
    unit = 1 / epoch.batch_size - 1 / epoch.num_data

    def variance(number):
        """The variance due to the first `number` batches of an epoch."""
        squares = np.expm1(2 * number * logs) / np.expm1(2 * logs)
        total = np.expm1(number * logs) / np.expm1(logs)
        extra = 1 / epoch.last_size - 1 / epoch.batch_size if number == epoch.length else 0.0
        return (squares / epoch.batch_size + extra - total**2 / epoch.num_data) / unit

    seen, counts = np.unique(phases, return_counts=True)
    earlier = variance(epoch.length) / -np.expm1(2 * epoch.length * logs)
    found = [variance(phase) + np.exp(2 * phase * logs) * earlier for phase in seen]
    return np.maximum(np.average(found, axis=0, weights=counts) * -np.expm1(2 * logs), 0.0)


def rates_of(probes: Probes) -> np.ndarray:
    """|H z|^2 / |z' H z| at every draw: an average of the Hessian's eigenvalues dominated by the large ones."""
    squares = np.sum(probes.product**2, axis=-1)
    return squares / np.maximum(np.abs(np.sum(probes.signs * probes.product, axis=-1)), np.sqrt(squares) + 1e-30)


def largest_drift(probes: Probes, is_seen: np.ndarray) -> float:
    """The mean square of a coordinate's gradient without noise, the largest over coordinates."""
    squares = np.where(is_seen[..., None], probes.gradient * probes.other_gradient, 0.0)
    return float(np.max(np.abs(np.sum(squares, axis=(0, 1))))) / np.sum(is_seen)
