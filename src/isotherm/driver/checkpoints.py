"""Checkpoints of a run, which Orbax writes atomically."""

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
    """The state of a run before an iteration."""

    iteration: int
    carry: Any
    num_records: int
    energies: np.ndarray  # At the positions of the carry, to recognize the potential; NaN if not computed.


class Checkpoints:
    """The last two checkpoints of a run in a folder."""

    def __init__(self, folder: pathlib.Path):
        import orbax.checkpoint as ocp

        logging.getLogger("absl").setLevel(logging.ERROR)
        # Temporary directories are those of a process that was killed: the folder is locked.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=2, enable_async_checkpointing=False, cleanup_tmp_directories=True
        )
        self.folder = folder
        self._manager = ocp.CheckpointManager(folder.resolve() / "checkpoints", options=options)
        self._standard = ocp.args.StandardSave, ocp.args.StandardRestore

    def save(self, iteration: int, carry: Any, num_records: int, energies: np.ndarray) -> None:
        """Write a checkpoint; see `Checkpoint`."""
        # Copies, since the next block overwrites the carry. Orbax refuses arrays without elements.
        leaves = [np.array(leaf) for leaf in jax.tree.leaves(carry) if leaf.size]
        tree = {"carry": leaves, "num_records": np.asarray(num_records), "energies": energies}
        self._manager.save(iteration, args=self._standard[0](tree))

    def restore(self, carry_like: Any) -> Checkpoint | None:
        """The newest checkpoint that can be read; None if none was written."""
        leaves, structure = jax.tree.flatten(carry_like)
        kept = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves if math.prod(x.shape)]
        energies = carry_like.milestones.best_energy
        like = {"carry": kept, "num_records": np.asarray(0), "energies": np.zeros(energies.shape, energies.dtype)}
        reasons = []
        for step in sorted(self._manager.all_steps(), reverse=True):
            try:
                found = self._manager.restore(step, args=self._standard[1](like))
            except Exception as error:  # Orbax and TensorStore raise many types; an older checkpoint may be intact.
                reasons.append(f"{step}: {str(error).splitlines()[0][:160]}")
                continue
            read = iter(found["carry"])
            whole = [jnp.array(next(read)) if math.prod(x.shape) else jnp.zeros(x.shape, x.dtype) for x in leaves]
            if reasons:
                warnings.warn(
                    f"A checkpoint in {self.folder} is damaged: the run resumes from the one before, at iteration {step:,}, and "
                    f"repeats what followed. Damaged: {'; '.join(reasons)}",
                    stacklevel=5,
                )
            carry = jax.tree.unflatten(structure, whole)
            return Checkpoint(step, carry, int(found["num_records"]), np.asarray(found["energies"]))
        if reasons:
            refuse("folder", "a run with a readable checkpoint", "; ".join(reasons), "Start the run again elsewhere.")
        return None

    def close(self) -> None:
        """Wait until everything is written."""
        self._manager.close()
