"""One of several processes of a run: samples a case of `child_devices` into a folder, and stops it halfway if asked."""

import pathlib
import sys

import isotherm as iso


def main(out: str, names: list[str], stop_after: int) -> None:
    """Run cases, or resume those that are in their folders."""
    iso.distributed.initialize()
    # The cases have arrays of JAX, which must not be made before.
    from tests.reproducibility.child_devices import CASES, run_of

    assert iso.distributed.process_count() > 1
    for name in names:
        potential, _, sampler, _ = CASES[name]
        folder = pathlib.Path(out) / name
        if stop_after:
            run_of(name, out=folder, callback=lambda status: status.iteration >= stop_after)
        elif folder.exists():
            iso.resume(folder, potential, sampler, measure_bias=False, progress=False)
        else:
            run_of(name, out=folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].split(","), int(sys.argv[3]))
