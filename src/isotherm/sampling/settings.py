"""The settings of a run, checked before any work, and the programs made from them."""

import dataclasses
import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.engine.lengths import chunk_length, group_length
from isotherm.engine.program import Program
from isotherm.engine.random_inputs import batches_of, draw_batches, draw_potential_noises, open_streams
from isotherm.foundation.errors import check_choice, check_integer, check_real, refuse
from isotherm.foundation.randomness import seed_key
from isotherm.potentials.potential import Potential, check_scalar_energy
from isotherm.sampling.outline import Alike, alike, outline
from isotherm.sampling.sampler import Sampler

_BUFFER_BYTES = 32 << 20
_NEVER = np.iinfo(np.int32).max


@dataclasses.dataclass(frozen=True)
class Settings:
    """How long, how often and from which seed; see `isotherm.sample`."""

    num_steps: int
    num_chains: int = 1
    num_runs: int = 1
    seed: int = 0
    thinning: int = 1
    burn_in: int = 0
    target_energy: float = -np.inf
    track_best: bool | None = None
    chain_mode: str = "vmap"
    block_length: int | None = None

    def __post_init__(self):
        check_integer("num_steps", self.num_steps, 1, "Give the number of iterations.")
        check_integer("num_chains", self.num_chains, 1, "Give the number of chains in a run.")
        check_integer("num_runs", self.num_runs, 1, "Give the number of independent repeats.")
        seed_key(self.seed)
        check_integer("thinning", self.thinning, 1, "Give the iterations between two draws; 1 keeps all.")
        check_integer("burn_in", self.burn_in, 0, "Give the number of iterations to leave out at the start.")
        check_choice("chain_mode", self.chain_mode, ("vmap", "map"))
        if self.block_length is not None:
            check_integer("block_length", self.block_length, 1, "Give iterations per block, or None.")
        if self.num_steps > _NEVER // 2:
            remedy = "Go on with another run that starts from the last draws: init=iso.per_chain(...)."
            refuse("num_steps", f"at most {_NEVER // 2}", self.num_steps, remedy)
        if self.thinning > self.num_steps > 1:
            remedy = "Draws are that many iterations apart: lower it, or take more steps."
            refuse("thinning", f"at most `num_steps`, {self.num_steps}", self.thinning, remedy)
        if self.target_energy != -np.inf:
            check_real("target_energy", self.target_energy, "Give the energy to reach, or leave it out.")

    def record_times(self, sampler: Sampler) -> np.ndarray:
        """The iterations whose positions are kept."""
        times = np.arange(self.burn_in, self.num_steps, self.thinning)
        if sampler.window is not None:
            times = sampler.window.select(times)
        if len(times) == 0:
            rule = "such that some iteration is collected"
            got = (
                f"burn_in={self.burn_in}, thinning={self.thinning}, num_steps={self.num_steps}, window={sampler.window}"
            )
            refuse("thinning", rule, got, "Lower `burn_in` or `thinning`, or take more steps.")
        return times

    def seed_key(self) -> Array:
        """The key that every stream is folded from."""
        return seed_key(self.seed)


def build_program(
    potential: Potential,
    sampler: Sampler,
    settings: Settings,
    position: Any,
    collect: Callable[[Any], Any],
    num_records: int,
) -> Program:
    """The program of a run; the same one for runs that differ only in length, seed, burn-in or start."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), position)
    lanes = settings.num_runs * settings.num_chains
    model_state = jax.tree.leaves(potential.init_model_state())
    size = sum(leaf.size for leaf in jax.tree.leaves(one)) + sum(np.size(leaf) for leaf in model_state)
    record_bytes = 4 * lanes * (size + 2)
    slots = min(max(_BUFFER_BYTES // record_bytes, 1), 1 << (num_records - 1).bit_length())
    tracks_best = not potential.has_data if settings.track_best is None else settings.track_best
    parts = sampler.parts(potential, settings.chain_mode)
    # Noise drawn past the next periodic work would be drawn again after it.
    periods = [every for every in (parts.measure_every, sampler.estimator.refresh_every) if every is not None]
    chunk = min([chunk_length(lanes, size), *periods])
    has_state = jax.tree.leaves(jax.eval_shape(lambda: sampler.coupling.init(settings.num_chains)))
    return _program(
        outline(potential),
        alike(sampler),
        settings.num_runs,
        settings.num_chains,
        settings.chain_mode,
        chunk,
        group_length(chunk, lanes, size) if has_state else chunk,
        slots,
        max(2, -(-chunk // settings.thinning)),
        tracks_best,
        collect,
    )


def check_start(program: Program, potential: Potential, seed_key: Array, feed: Any, position: Any) -> float:
    """Refuse an energy that is no real scalar, or not finite where chains start. The first energy, for comparisons."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[2:], leaf.dtype), position)
    if program.parts.kernel.is_stack:
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), one)

    def energy(x, feed):
        words, zero = jnp.zeros(2, jnp.uint32), jnp.zeros((), jnp.int32)
        noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(words, words, zero[None], x))
        keys = open_streams(seed_key, program.num_runs, program.num_chains)
        place = 0 if potential.is_batch_shared else (0, 0)
        batch = jax.tree.map(lambda leaf: leaf[place], draw_batches(program.parts, keys, zero, feed)[0])
        return potential.evaluate(x, batch, noise, potential.init_model_state()).energy

    check_scalar_energy("energy", energy, one, feed)
    start_energies = _start_energies(program.parts.potential, program.num_runs, program.num_chains)
    energies = np.asarray(start_energies(seed_key, feed, position))
    if not np.all(np.isfinite(energies)):
        run, chain = np.argwhere(~np.isfinite(energies))[0]
        got = f"{energies[run, chain]} in chain {chain} of run {run}"
        refuse("init", "where the energy is finite", got, "Start elsewhere, or mend the energy there.")
    return float(energies[0, 0])


def thread_pool_size() -> int:
    """The size of XLA's thread pool on a CPU, on which the rounding of matrix products depends."""
    return int(os.environ.get("NPROC") or os.cpu_count() or 1)


@functools.lru_cache(maxsize=32)
def _program(
    potential, sampler, num_runs, num_chains, chain_mode, chunk, group, slots, rows, tracks_best, collect
) -> Program:
    parts = sampler.kept.parts(_interned(potential), chain_mode)
    return Program(parts, num_runs, num_chains, chunk, group, slots, rows, tracks_best, collect)


@functools.lru_cache(maxsize=64)
def _interned(potential: Alike) -> Potential:
    """One object for equal outlines, so that what is compiled for it is found again."""
    return potential.kept


@functools.lru_cache(maxsize=32)
def _start_energies(potential: Potential, num_runs: int, num_chains: int) -> Callable[..., Array]:
    """Energies of the starts on the batches of iteration 0, one forward pass each; the same for every sampler."""

    def energies(seed_key, feed, position):
        keys, zero = open_streams(seed_key, num_runs, num_chains), jnp.zeros((), jnp.int32)
        one = jax.tree.map(lambda leaf: leaf[0, 0], position)
        noise = draw_potential_noises(potential, keys.potential_shared, keys.potential, zero[None], one, 1)[0]
        keys_batch = keys.batch_shared if potential.is_batch_shared else keys.batch
        batch = batches_of(potential, keys_batch, zero, feed, 1)[0]
        state = potential.init_model_state()

        def of_run(position, batch, noises):
            axes = (0, None if potential.is_batch_shared else 0, 0)
            evaluate = jax.vmap(lambda x, b, n: potential.evaluate(x, b, n, state).energy, axes)
            return evaluate(position, batch, noises)

        return jax.vmap(of_run)(position, batch, jax.tree.map(lambda leaf: leaf[0], noise))

    return jax.jit(energies)
