"""Measures the bias of a run lazily, from gradients at some of its draws."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np

from isotherm.contour.energy_noise import local_noise, weight_functions
from isotherm.diagnostics.tilt import Dynamics, Epoch, Probes, largest_drift, leaf_heats_of, rates_of, tilts_of
from isotherm.diagnostics.wells import centers_of, separate
from isotherm.engine import program_cache
from isotherm.engine.probes import Points, evaluate_probes
from isotherm.foundation.parts import number_dtype
from isotherm.foundation.positions import columns, named_leaves
from isotherm.foundation.randomness import Purpose, run_keys
from isotherm.foundation.schedules import values_at
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.potentials.potential import Potential, innermost
from isotherm.run.bias import MAX_COORDINATES, NUM_GROUPS, Bias, weights_left_out
from isotherm.samplers.sampler import Sampler

# The budget, as a share of the gradients of the run, and gradients per draw. Those without data are taken at once, at a tenth of
# the cost.
_SHARE, _SHARE_WITHOUT_DATA, _GRADIENTS_PER_DRAW = 0.03, 0.3, 4
_MIN_DRAWS, _MAX_DRAWS = 128, 4_096
# For positions of more than `MAX_COORDINATES` numbers: each gradient takes longer than in a run.
_SHARE_OF_LARGE, _MIN_DRAWS_OF_LARGE = 0.018, 32
# For positions of more than `_HUGE` numbers: sums over them need fewer draws.
_SHARE_OF_HUGE, _HUGE = 0.013, 10_000
# Largest streamed data that are read into memory.
_MAX_BYTES = 1 << 28
# Rounding errors in a difference of two energies.
_ROUNDINGS = 8.0
# Draws needed per coordinate, to estimate covariances.
_DRAWS_PER_COORDINATE = 4


@dataclasses.dataclass(frozen=True, eq=False)
class BiasProbe:
    """Measures the bias of a run."""

    potential: Potential
    sampler: Sampler
    words: np.ndarray  # Of the seed's key.
    coupling: Any  # The final state of the coupling if it multiplies gradients; else nothing.
    preconditioner: Any  # The final one of the kernel, like positions; None if there is none.
    position: Any  # An example, whose structure a folder may not keep.
    read: Any  # What the functions of the potential read during the run.

    def at(self, number: int) -> "BiasProbe":
        """The probe of one of several runs."""
        kept = jax.tree.map(lambda leaf: leaf[number], (self.coupling, self.preconditioner))
        return dataclasses.replace(self, coupling=kept[0], preconditioner=kept[1])

    @transfers_on_purpose
    def measure(self, run: Any) -> Bias | None:
        """The bias of a run with axes (chain, draw, ...); None if it cannot be measured."""
        size = sum(leaf.size for leaf in jax.tree.leaves(self.position))
        temperature = run.config.get("temperature")
        if not temperature or not run.claims_distribution or run.is_adjusted or size == 0:
            return None
        if program_cache.read_by(self.potential) != self.read:
            # The energy has changed since.
            return None
        if self.potential.is_streamed:
            held = self.potential.in_memory(_MAX_BYTES)
            if held is None:
                return None
            return dataclasses.replace(self, potential=held, read=program_cache.read_by(held)).measure(run)
        chosen = self._spread_over(run, size)
        both = (_structured(run.draws, self.position), _structured(run.model_state, self.potential.init_model_state()))
        rows = jax.tree.map(lambda leaf: np.asarray(leaf[:, chosen]), both)
        given = np.asarray(run.log_weights)[:, chosen]
        shown, space = rows[0], self.potential.space
        values, is_periodic = shown, np.zeros(len(jax.tree.leaves(rows[0])), bool)
        if space is not None:
            # Draws that were rounded to the edge of a constraint have no free position, and are left out below.
            free = jax.tree.map(np.asarray, jax.jit(space.unconstrained)(shown))
            # A cut through a mode would look like two wells.
            free, values = (space.unrolled(tree, np.isfinite(given)) for tree in (free, shown))
            rows, is_periodic = (free, rows[1]), space.periodic_leaves(free)
        step = float(np.mean(values_at(self.sampler.step_size, np.asarray(run.times[chosen]))))
        most = min(MAX_COORDINATES, max(len(run.log_weights) * len(chosen) // _DRAWS_PER_COORDINATE, 1))
        coordinates = np.unique(np.linspace(0, size - 1, min(size, most)).astype(int))
        places = coordinates if space is None else space.places(self.position)[coordinates]
        # The displacement by a step's noise, which makes the result free of units.
        scale = np.full((len(run.log_weights), len(coordinates)), math.sqrt(step * temperature))
        if self.preconditioner is not None:
            scale = scale * np.sqrt(columns(self.preconditioner, 1, coordinates))
        wells = self._wells(rows[0], coordinates, given, size)
        probes, jumps, unexplained, virials, energies = self._probes(run, rows, coordinates, scale, wells, given)
        sizes = np.array([size, *(leaf[0, 0].size for leaf in jax.tree.leaves(rows[0]))])
        dynamics = self._dynamics(run, chosen, scale, (is_periodic, np.repeat(is_periodic, sizes[1:])[coordinates]))
        # The energy may be infinite or NaN a step away from a draw.
        is_seen = np.all([np.all(np.isfinite(part), axis=-1) for part in (*probes, jumps[..., None])], axis=0)
        log_weights = np.where(is_seen, given, -np.inf)
        if not np.any(np.isfinite(log_weights)):
            return None
        tilts, heats, is_measured = tilts_of(probes, wells, log_weights, dynamics)
        read = np.asarray(run.energies, np.float64)[:, chosen]
        of_weights = self._weight_errors(run, temperature * energies, read, log_weights)
        errors, of_forces = self.sampler.kernel.step_errors, log_weights
        if self.sampler.coupling.log_weights is not None and not self.potential.is_exact:
            # The measured forces have the multiplier of a contour sampler, which the draws follow without weights.
            of_forces = np.where(np.isfinite(log_weights), 0.0, -np.inf)
        return Bias(
            values=columns(values, 2, places),
            coordinates=places,
            draws=shown if len(coordinates) == size else None,
            log_weights=log_weights,
            energies=read,
            tilts=tilts + of_weights,
            weight_errors=of_weights[0],
            heats=heats,
            leaf_heats=leaf_heats_of(virials, sizes, of_forces, dynamics),
            leaf_sizes=sizes,
            is_measured=is_measured,
            rates=np.where(is_seen, rates_of(probes), 0.0) * (1.0 if errors is None else errors.curvature),
            jumps=np.where(is_seen, jumps, 0.0),
            unexplained=unexplained,
            drift=largest_drift(probes, is_seen),
            step_size=step,
            is_exact=self.potential.is_exact,
        )

    def _wells(self, positions: Any, coordinates: np.ndarray, log_weights: np.ndarray, size: int) -> np.ndarray:
        """The well of each draw, shape (P, S); a single well for exact gradients or large positions."""
        wells = np.zeros(log_weights.shape, np.int32)
        is_used = np.isfinite(log_weights)
        if not self.potential.is_exact and len(coordinates) == size and np.any(is_used):
            wells[is_used] = separate(columns(positions, 2, coordinates)[is_used])
        return wells

    def _probes(
        self,
        run: Any,
        rows: Any,
        coordinates: np.ndarray,
        scale: np.ndarray,
        wells: np.ndarray,
        log_weights: np.ndarray,
    ) -> tuple[Probes, np.ndarray, float, np.ndarray, np.ndarray]:
        """Probes at draws (P, S, ...), `Bias.jumps`, `Bias.unexplained`, virials and energies, in units of the temperature.

        Virials of the leaves are around the centers of wells, (P, S, leaves). Energies are on two batches, (2, P, S).
        """
        chains, number = jax.tree.leaves(rows[0])[0].shape[:2]
        rng = np.random.default_rng(self.words)
        signs = rng.choice((-1.0, 1.0), (chains, number, len(coordinates)))
        away = scale[:, None] * signs
        sides = [_moved(rows[0], coordinates, side * away) for side in (1.0, -1.0)]
        is_exact = self.potential.is_exact
        points = [rows[0], *sides, rows[0]][: 3 if is_exact else 4]
        # All points of a draw use the same batch, except for the last.
        batches = np.arange(chains * number).reshape(number, chains)
        numbers = np.concatenate([batches + (place == 3) * batches.size for place in range(len(points))])
        keys = run_keys(self.words, np.asarray(int(Purpose.CHECKUP)), numbers)

        def stack(*leaves):
            return jax.device_put(np.concatenate([np.moveaxis(leaf, 1, 0) for leaf in leaves]))

        stacked = jax.tree.map(stack, *points)
        states = jax.tree.map(stack, *[rows[1]] * len(points))
        mode, temperature = run.config["settings"]["chain_mode"], float(run.config["temperature"])
        parts = self.sampler.parts(self.potential.on_device(), mode, number_dtype(stacked))
        # The first batch of an epoch is a full one.
        places = np.zeros(len(points) * number, np.int32)
        around = np.concatenate([wells.T] * len(points))
        centers = centers_of(rows[0], log_weights, wells)
        given = (Points(stacked, states, keys, places, around), coordinates, centers, np.int32(run.num_steps - 1))
        found = program_cache.call(evaluate_probes, parts, *jax.device_put((self.coupling, *given)))
        energy, gradient, pull, virial = (
            np.moveaxis(np.asarray(part, np.float64).reshape(len(points), number, *part.shape[1:]), 1, 2) / temperature
            for part in found
        )
        here, ahead, behind = (scale[:, None] * part for part in pull[:3])
        other = here if is_exact else scale[:, None] * pull[3]
        # Simpson's rule along the displacement, after rounding.
        ends = [columns(side, 2, coordinates) for side in sides]
        along = np.sum((ends[0] - ends[1]) * (gradient[1] + 4.0 * gradient[0] + gradient[2]), axis=-1) / 6.0
        jumps = energy[1] - energy[2] - along
        if not self.potential.has_gradient_of_energy:
            jumps = np.where(np.isfinite(jumps), 0.0, jumps)
        values = columns(rows[0], 2, coordinates) / scale[:, None]
        # At the draws, on one batch or two.
        virials = np.mean(virial[::3], axis=0)
        rounding = _ROUNDINGS * np.finfo(np.asarray(found[0]).dtype).eps * np.abs(energy[0])
        is_seen = np.isfinite(jumps) & np.isfinite(along)
        unexplained = 0.0
        if np.any(is_seen):
            typical = np.median((np.abs(jumps) - rounding)[is_seen])
            unexplained = max(typical, 0.0) / max(np.median(np.abs(along)[is_seen]), 1e-30)
        probes = Probes(values, here, other, signs, 0.5 * (ahead - behind))
        return probes, jumps, unexplained, virials, energy[[0, -1]]

    def _weight_errors(self, run: Any, energies: np.ndarray, read: np.ndarray, log_weights: np.ndarray) -> np.ndarray:
        """The part of the tilts (1 + G, P, S) that uneven energy noise adds to the weights of a contour sampler.

        `energies` are two independent ones at every draw; `read` are those of the weights.
        """
        functions = weight_functions(run.stats, run.config)
        if self.potential.is_exact or not self.potential.coupling_includes_prior or functions is None:
            return np.zeros((1 + NUM_GROUPS, *log_weights.shape))
        local, usual = local_noise(*energies), np.broadcast_to(np.nan_to_num(run.stats["energy_noise"]), len(read))
        wrong = np.zeros_like(read)
        for number, function in enumerate(functions):
            # All chains, if they share a theta.
            own = slice(None) if len(functions) == 1 else slice(number, number + 1)
            common = function.correction(read[own], float(np.sqrt(np.mean(usual[own] ** 2))))[0]
            for noise in np.unique(local[own]):
                is_so = local[own] == noise
                wrong[own][is_so] = (function.correction(read[own], float(noise))[0] - common)[is_so]
        kept = np.exp(-wrong)
        means = np.einsum("gcs,cs->g", weights_left_out(log_weights), kept)
        # Cov(f, this) is exactly the bias of the mean of f, however large the errors of the weights.
        return 1.0 - kept / means[:, None, None]

    def _spread_over(self, run: Any, size: int) -> np.ndarray:
        """Indices of equally spaced draws, few enough to be cheap."""
        chains, number = run.log_weights.shape
        fewest = _MIN_DRAWS if size <= MAX_COORDINATES else _MIN_DRAWS_OF_LARGE
        share = _SHARE if self.potential.has_data else _SHARE_WITHOUT_DATA
        if size > MAX_COORDINATES:
            share = min(share, _SHARE_OF_LARGE if size <= _HUGE else _SHARE_OF_HUGE)
        wanted = np.clip(share * run.num_steps * chains / _GRADIENTS_PER_DRAW, fewest, _MAX_DRAWS)
        count = int(np.clip(wanted // chains, 1, number))
        return np.linspace(0, number - 1, count).astype(int)

    def _dynamics(
        self, run: Any, chosen: np.ndarray, scale: np.ndarray, is_periodic: tuple[np.ndarray, np.ndarray]
    ) -> Dynamics:
        temperature, is_exact = float(run.config["temperature"]), self.potential.is_exact
        errors, epoch = self.sampler.kernel.step_errors, _epoch_of(self.potential)
        # There is no expansion in the step for a multiplier that jumps between bins: the tilt is measured.
        is_known = errors is not None and not (is_exact and self.sampler.coupling.log_weights is not None)
        return Dynamics(
            (errors.curvature, errors.noise) if errors is not None and is_known else None,
            epoch,
            np.asarray(run.times[chosen]) % (1 if epoch is None else epoch.length),
            0.0 if errors is None else errors.assumed_variance * np.mean(scale**2, axis=0) / temperature,
            is_exact,
            not {"num_rejected", "num_reflected"}.isdisjoint(run.stats),
            *is_periodic,
        )


def _structured(tree: Any, like: Any) -> Any:
    """The leaves of `tree` in the structure of `like`. A folder stores the names of leaves alone."""
    by_name = named_leaves(tree)
    return jax.tree.unflatten(jax.tree.structure(like), [by_name[name] for name in named_leaves(like)])


def _epoch_of(potential: Any) -> Epoch | None:
    potential = innermost(potential)
    if getattr(potential, "batching", None) != "epochs" or potential.batch_size is None:
        return None
    return Epoch(potential.num_data, potential.batch_size)


def _moved(positions: Any, coordinates: np.ndarray, away: np.ndarray) -> Any:
    """Positions (P, S, ...) with some of their coordinates moved."""
    leaves, structure = jax.tree.flatten(positions)
    found, begin = [], 0
    for leaf in leaves:
        flat = np.array(leaf.reshape(*leaf.shape[:2], -1))
        is_here = (coordinates >= begin) & (coordinates < begin + flat.shape[-1])
        flat[..., coordinates[is_here] - begin] += away[..., is_here].astype(flat.dtype)
        begin += flat.shape[-1]
        found.append(flat.reshape(leaf.shape))
    return jax.tree.unflatten(structure, found)
