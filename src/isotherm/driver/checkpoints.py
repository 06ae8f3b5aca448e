"""Checkpoints of a run, which Orbax writes atomically, with a checksum of every array."""

import logging
import math
import pathlib
import shutil
import warnings
import zlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.errors import refuse

# One that is damaged costs the time since the one before.
NUM_KEPT = 3


class Checkpoint(NamedTuple):
    """The state of a run before an iteration."""

    iteration: int
    carry: Any
    num_records: int
    energies: np.ndarray  # At the positions of the carry, to recognize the potential; NaN if not computed.


class Checkpoints:
    """The last `NUM_KEPT` checkpoints of a run in a folder."""

    def __init__(self, folder: pathlib.Path):
        import orbax.checkpoint as ocp

        logging.getLogger("absl").setLevel(logging.ERROR)
        # Temporary directories are those of a process that was killed: the folder is locked.
        options = ocp.CheckpointManagerOptions(
            max_to_keep=NUM_KEPT, enable_async_checkpointing=False, cleanup_tmp_directories=True
        )
        self.folder = folder
        self._manager = ocp.CheckpointManager(folder.resolve() / "checkpoints", options=options)
        self._standard = ocp.args.StandardSave, ocp.args.StandardRestore

    def save(self, iteration: int, carry: Any, num_records: int, energies: np.ndarray) -> None:
        """Write a checkpoint; see `Checkpoint`."""
        # Copies, since the next block overwrites the carry. Orbax refuses arrays without elements.
        leaves = [np.array(leaf) for leaf in jax.tree.leaves(carry) if leaf.size]
        tree = {"carry": leaves, "num_records": np.asarray(num_records), "energies": np.asarray(energies)}
        # Orbax compares no checksums of values.
        self._manager.save(iteration, args=self._standard[0]({**tree, "checksums": _checksums(tree)}))

    def restore(self, carry_like: Any) -> Checkpoint | None:
        """The newest checkpoint that can be read; None if none was written."""
        leaves, structure = jax.tree.flatten(carry_like)
        kept = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves if math.prod(x.shape)]
        energies = carry_like.milestones.best_energy
        like = {"carry": kept, "num_records": np.asarray(0), "energies": np.zeros(energies.shape, energies.dtype)}
        like["checksums"] = np.zeros(len(jax.tree.leaves(like)), np.uint32)
        reasons: dict[int, str] = {}
        for step in sorted(self._manager.all_steps(), reverse=True):
            try:
                found = self._manager.restore(step, args=self._standard[1](like))
            except Exception as error:  # Orbax and TensorStore raise many types; an older checkpoint may be intact.
                reasons[step] = (str(error).splitlines() or [type(error).__name__])[0][:160]
                continue
            found = dict(found)
            stored = found.pop("checksums")
            if not np.array_equal(stored, _checksums(found)):
                reasons[step] = "its numbers do not match their checksums"
                continue
            read = iter(found["carry"])
            whole = [jnp.array(next(read)) if math.prod(x.shape) else jnp.zeros(x.shape, x.dtype) for x in leaves]
            if reasons:
                warnings.warn(
                    f"A checkpoint in {self.folder} is damaged: the run resumes from the one before, at iteration {step:,}, and "
                    f"repeats what followed. Damaged: {_listed(reasons)}",
                    stacklevel=5,
                )
                self._remove(list(reasons))
            carry = jax.tree.unflatten(structure, whole)
            return Checkpoint(step, carry, int(found["num_records"]), np.asarray(found["energies"]))
        if reasons:
            refuse("folder", "a run with a readable checkpoint", _listed(reasons), "Start the run again elsewhere.")
        return None

    def _remove(self, steps: list[int]) -> None:
        """Remove damaged checkpoints: Orbax writes none before the newest that it finds."""
        for step in steps:
            shutil.rmtree(self.folder / "checkpoints" / str(step), ignore_errors=True)
        self._manager.reload()

    def close(self) -> None:
        """Wait until everything is written."""
        self._manager.close()


def _checksums(tree: Any) -> np.ndarray:
    """The CRC-32 of every array of a tree."""
    arrays = [np.ascontiguousarray(leaf) for leaf in jax.tree.leaves(tree)]
    return np.array([zlib.crc32(array.reshape(-1).view(np.uint8).data) for array in arrays], np.uint32)


def _listed(reasons: dict[int, str]) -> str:
    return "; ".join(f"{step}: {reason}" for step, reason in reasons.items())
