"""Programs of runs, for tests that look at what was compiled."""

import inspect
import re
from typing import Any

import jax
import numpy as np

from isotherm.driver.layout import Layout
from isotherm.driver.prepare import PreparedRun, prepare
from isotherm.driver.settings import settings_of
from isotherm.engine.blocks import Times
from isotherm.engine.program import Program, identity
from isotherm.engine.whole_loops import whole_loops
from isotherm.potentials.start import start_positions
from isotherm.samplers.sampler import as_potential


def prepared(potential: Any, sampler: Any, init: Any, **settings: Any) -> PreparedRun:
    """A run that is ready to go."""
    given = settings_of(sampler, init, num_chains=settings.pop("num_chains", None), num_ladders=1, **settings)
    layout = Layout(None, None, given.num_ladders)
    position = start_positions(init, given.seed_words(), layout.run_numbers, given.num_chains)
    return prepare(as_potential(potential), (sampler,), given, layout, position, identity)


def text_of(run: PreparedRun) -> str:
    """The text of the compiled loop."""
    program = run.program
    carry, records = program.init(run.position)
    block = program.block(Times(*run.times.rule, 0, 0), -np.inf, 0, 0)
    arguments = (program, run.keys, None, carry, records, block)
    with whole_loops():
        return (
            jax.jit(inspect.unwrap(Program.advance), donate_argnums=(3, 4)).lower(*arguments).compile().as_text() or ""
        )


def computations(text: str) -> dict[str, list[str]]:
    """Instructions of each computation by its name."""
    blocks = re.findall(r"^(?:ENTRY )?%?([\w.\-]+) \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return {name: body.splitlines() for name, body in blocks}
