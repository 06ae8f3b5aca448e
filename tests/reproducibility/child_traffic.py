"""Bytes that devices exchange in an iteration, read off the compiled program, for positions of any size."""

import json
import re
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.engine import program_cache

_BYTES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "f64": 8}


def traffic(compiled: str) -> list[int]:
    """The bytes of the results of all exchanges in a program; each is in a loop over iterations or is done once."""
    found = re.findall(
        r"= \(?(\w+)\[([\d,]*)\][^=]*(?:all-gather|all-reduce|collective-permute|all-to-all)\(", compiled
    )
    return [_BYTES[kind] * int(np.prod([int(n) for n in shape.split(",") if n] or [1])) for kind, shape in found]


def main(sizes: list[int]) -> None:
    """Print the exchanges of replica exchange and of a contour sampler at some sizes of the position."""
    texts: list[str] = []
    whole = program_cache._compile

    def watched(function: Any, *given: Any) -> Any:
        lowered: list[Any] = []
        jit = jax.jit

        def kept(*arguments: Any, **options: Any) -> Any:
            made: Any = jit(*arguments, **options)
            lower = made.lower
            return type(
                "Kept", (), {"lower": staticmethod(lambda *leaves: lowered.append(lower(*leaves)) or lowered[-1])}
            )

        jax.jit = kept
        try:
            result = whole(function, *given)
        finally:
            jax.jit = jit
        texts.append(lowered[0].compile().as_text())
        return result

    program_cache._compile = watched
    found: dict[str, dict[int, list[int]]] = {}
    samplers = {
        "resgld": (iso.resgld(1e-3, temperatures=(1.0, 2.0, 4.0, 8.0)), {"num_ladders": 1}),
        "icsgld": (iso.icsgld(1e-3, partition=(0.0, 1e9, 20)), {"num_chains": 4}),
    }
    for name, (sampler, given) in samplers.items():
        for size in sizes:
            texts.clear()
            options: dict[str, Any] = {"num_steps": 2, "devices": 4, "track_best": False, "progress": False, **given}
            options |= {"init": jnp.zeros(size), "measure_bias": False, "collect": lambda x: x[:2]}
            iso.sample(lambda x: 0.5 * jnp.sum(x**2), sampler, **options)
            found.setdefault(name, {})[size] = sorted(number for text in texts for number in traffic(text))
    print(json.dumps(found))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1].split(",")])
