"""How arguments and results of a sharded program lie on its devices."""

import inspect
from typing import TYPE_CHECKING, Any

import jax

from isotherm.engine.blocks import Carry
from isotherm.engine.iteration import State
from isotherm.engine.random_inputs import Keys, Stream
from isotherm.engine.records import Records
from isotherm.engine.sharding import CHAINS, RUNS, Spec

if TYPE_CHECKING:
    from isotherm.engine.program import Program


class Specs:
    """Prefixes of trees, by the methods of a program; see `engine.sharding`."""

    def __init__(self, program: "Program"):
        runs = () if program.num_runs is None else (RUNS,)
        self._program = program
        self.runs, self.lanes, self.nowhere = Spec(*runs), Spec(*runs, CHAINS), Spec()
        reads_others = program.parts.coupling.traits.reads_others
        self.coupled = self.runs if reads_others else self.lanes
        state = State(self.lanes, self.lanes, self.coupled, self.lanes, self.lanes, self.lanes)
        self.carry = Carry(state, self.lanes)  # pyright: ignore[reportArgumentType]
        self.observed = Spec(None, *self.coupled)
        kept = Spec(None, *self.lanes)
        self.records = Records(kept, kept, kept, kept, self.observed)  # pyright: ignore[reportArgumentType]

    def program(self) -> Any:
        """Parts of a sweep belong to runs; all else is everywhere."""
        program = self._program
        parts = jax.tree.map(lambda _: self.runs if program.is_swept else self.nowhere, program.parts)
        potential = jax.tree.map(lambda _: self.nowhere, program.parts.potential)
        return program.replace_unchecked(parts=parts.replace_unchecked(potential=potential))

    def keys(self) -> Keys:
        shared = {"potential_shared", "batch_shared", "coupling", "measured_shared", "measured_batch_shared"}
        return Keys(*(self.runs if name in shared else self.lanes for name in Keys._fields))  # pyright: ignore[reportArgumentType]

    def stream(self, given: Any) -> Any:
        if not isinstance(given, Stream):
            return self.nowhere
        # Leaves (R, L, B, n, ...), or (R, L, B, P, n, ...).
        own = self.runs if self._program.parts.potential.is_batch_shared else Spec(*self.runs, None, None, CHAINS)
        return Stream(self.nowhere, own, own, self.nowhere)  # pyright: ignore[reportArgumentType]

    def pieces(self) -> Any:
        """Pieces of all data, which runs share."""
        return Stream(self.nowhere, self.nowhere, self.nowhere, self.nowhere)  # pyright: ignore[reportArgumentType]

    def _init(self, position: Any) -> Any:
        return (self.lanes,), (self.carry, self.records)

    def advance(self, keys: Any, stream: Any, carry: Any, records: Any, block: Any) -> Any:
        given = (self.keys(), self.stream(stream), self.carry, self.records, self.nowhere)
        return given, (self.carry, self.records, self.nowhere)

    def of_statistics(self, carry: Any) -> Any:
        """Names of a coupling's statistics replace those of the kernel."""
        program = self._program
        coupled = program.parts.coupling.traits.reads_others and jax.tree.leaves(carry.state.coupling)
        names = _names_of_statistics(program) if coupled else ()
        shapes = jax.eval_shape(
            inspect.unwrap(type(program)._statistics), program.replace_unchecked(sharding=None), carry
        )
        return {name: self.runs if name in names else self.lanes for name in shapes}

    def _statistics(self, carry: Any) -> Any:
        return (self.carry,), self.of_statistics(carry)

    def _preconditioner(self, carry: Any) -> Any:
        return (self.carry,), self.lanes

    def couple(self, keys: Any, stream: Any, carry: Any, iteration: Any) -> Any:
        return (self.keys(), self.stream(stream), self.carry, self.nowhere), self.carry

    def refresh(self, stream: Any, carry: Any, energies: Any) -> Any:
        return (self.pieces(), self.carry, self.lanes), self.carry

    def add_pieces(self, stream: Any, count: Any, carry: Any, sums: Any) -> Any:
        return (self.pieces(), self.nowhere, self.carry, self.lanes), self.lanes


def _names_of_statistics(program: "Program") -> tuple[str, ...]:
    coupling = program.parts.coupling
    found = jax.eval_shape(lambda: coupling.statistics(coupling.init(program.num_chains)))
    return tuple(found)
