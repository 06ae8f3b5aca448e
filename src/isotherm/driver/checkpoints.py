"""Checkpoints of a run: the carry and how far it got, written by Orbax, whole or not at all."""

import logging
import math
import pathlib
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.errors import refuse


class Checkpoint(NamedTuple):
    """How far a run had come.

    Attributes:
        iteration: which comes next.
        carry: before it.
        num_records: how many there were.
        energies: by which its potential is recognized; NaN where they were not taken.
    """

    iteration: int
    carry: Any
    num_records: int
    energies: np.ndarray


class Checkpoints:
    """The last two checkpoints of a run in a folder."""

    def __init__(self, folder: pathlib.Path):
        import orbax.checkpoint as ocp

        logging.getLogger("absl").setLevel(logging.ERROR)
        # What a process that was killed had begun to write is removed: nobody else writes here, for the folder is locked.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=2, enable_async_checkpointing=False, cleanup_tmp_directories=True
        )
        self.folder = folder
        self._manager = ocp.CheckpointManager(folder.resolve() / "checkpoints", options=options)
        self._standard = ocp.args.StandardSave, ocp.args.StandardRestore

    def save(self, iteration: int, carry: Any, num_records: int, energies: np.ndarray) -> None:
        """Write a checkpoint of the state before `iteration`, with energies by which its potential is recognized."""
        # Orbax refuses arrays without elements, of which only the shape matters.
        leaves = [leaf for leaf in jax.tree.leaves(_on_host(carry)) if leaf.size]
        tree = {"carry": leaves, "num_records": np.asarray(num_records), "energies": energies}
        self._manager.save(iteration, args=self._standard[0](tree))

    def restore(self, carry_like: Any) -> "Checkpoint | None":
        """The newest checkpoint that can be read; None if there never was one."""
        steps = sorted(self._manager.all_steps(), reverse=True)
        leaves, structure = jax.tree.flatten(carry_like)
        kept = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves if math.prod(x.shape)]
        energies = carry_like.milestones.best_energy
        like = {"carry": kept, "num_records": np.asarray(0), "energies": np.zeros(energies.shape, energies.dtype)}
        reasons = []
        for step in steps:
            try:
                found = self._manager.restore(step, args=self._standard[1](like))
            except Exception as error:  # Orbax and TensorStore raise many kinds; an older checkpoint may be whole.
                reasons.append(f"{step}: {str(error).splitlines()[0][:160]}")
                continue
            read = iter(found["carry"])
            whole = [jnp.array(next(read)) if math.prod(x.shape) else jnp.zeros(x.shape, x.dtype) for x in leaves]
            if reasons:
                warnings.warn(
                    f"A checkpoint in {self.folder} is damaged: the run goes on from the one before, at iteration {step:,}, and "
                    f"repeats what came after it. Damaged: {'; '.join(reasons)}",
                    stacklevel=5,
                )
            carry = jax.tree.unflatten(structure, whole)
            return Checkpoint(step, carry, int(found["num_records"]), np.asarray(found["energies"]))
        if reasons:
            refuse("folder", "a run with a readable checkpoint", "; ".join(reasons), "Start the run again elsewhere.")
        return None

    def close(self) -> None:
        """Wait for what is being written."""
        self._manager.close()


def _on_host(tree: Any) -> Any:
    # Copies: the arrays are donated to the next block while a checkpoint may still be written.
    return jax.tree.map(lambda leaf: np.array(leaf), tree)
