"""Ctrl-C and SIGTERM keep everything: the run so far, and a folder that goes on as if nothing had happened."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso

ROOT = pathlib.Path(__file__).parents[2]
NUM_MOMENTS = 10
SETTINGS: dict[str, Any] = {"num_steps": 40_000, "num_chains": 4, "thinning": 10, "seed": 5}


@pytest.fixture(autouse=True)
def _in_the_foreground():
    """A shell that starts a process in the background lets it ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def energy(x):
    return 0.2 * jnp.sum(x**2) - 2.0 * jnp.sum(jnp.cos(2 * jnp.pi * x))


def interrupting(moment: int, number: signal.Signals = signal.SIGINT):
    """A callback that sends a signal when so many iterations are done."""

    def look(status):
        if status.iteration >= moment and not sent.is_set():
            sent.set()
            os.kill(os.getpid(), number)
        return False

    sent = threading.Event()
    return look


def go(folder, **options):
    starts = iso.per_chain(np.zeros((4, 2), np.float32))
    return iso.sample(energy, iso.sghmc(1e-3), init=starts, out=folder, block_length=500, **SETTINGS, **options)


def test_interrupted_at_ten_random_moments(tmp_path, capfd):
    whole, moments = go(tmp_path / "whole"), random.Random(2)
    for number in range(NUM_MOMENTS):
        folder = tmp_path / f"interrupted-{number}"
        part = go(folder, callback=interrupting(moments.randrange(39_000)))
        said = capfd.readouterr().err
        assert "Stopping after this block" in said
        assert f"Interrupted after {part.num_steps:,} of 40,000 iterations" in said
        assert f'iso.resume("{folder}", potential, sampler)' in said
        assert 0 < part.num_steps < 40_000
        np.testing.assert_array_equal(part.draws[:], whole.draws[:, : part.num_draws])
        np.testing.assert_array_equal(iso.load(folder).energies[:], part.energies[:])
        assert any("Stopped after" in note for note in part.summary().notes)
        rest = iso.resume(folder, energy, iso.sghmc(1e-3))
        np.testing.assert_array_equal(rest.draws[:], whole.draws[:])
        np.testing.assert_array_equal(rest.stats["best_energy"], whole.stats["best_energy"])


def test_without_a_folder_the_draws_so_far_come_back(capfd):
    run = iso.sample(
        energy,
        iso.sgld(1e-3),
        init=jnp.zeros(2),
        callback=interrupting(10_000),
        block_length=500,
        **SETTINGS,
    )
    assert run.num_draws == -(-run.num_steps // 10) < 4_000
    assert "The run that is returned has the draws so far" in capfd.readouterr().err
    # The handlers are those that were there before.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_signal_stops_at_once():
    def twice(status):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        iso.sample(energy, iso.sgld(1e-3), init=jnp.zeros(2), callback=twice, block_length=500, **SETTINGS)


def test_before_the_first_draw_there_is_no_run_to_hand_over(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "run", burn_in=30_000, callback=interrupting(100))
    with pytest.raises(ValueError, match="still in its burn-in"):
        iso.load(tmp_path / "run")
    rest = iso.resume(tmp_path / "run", energy, iso.sghmc(1e-3))
    np.testing.assert_array_equal(rest.draws[:], go(tmp_path / "whole", burn_in=30_000).draws[:])


def test_handlers_of_the_user_stay():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(True))
    try:
        run = iso.sample(
            energy,
            iso.sgld(1e-3),
            init=jnp.zeros(2),
            callback=interrupting(100, signal.SIGTERM),
            block_length=500,
            **SETTINGS,
        )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen
    assert run.num_steps == 40_000


def test_sigterm_keeps_the_run_and_ends_the_process(tmp_path):
    program = """
        from tests.reproducibility.test_interrupts import go, interrupting
        import signal, sys
        go(sys.argv[1], callback=interrupting(5_000, signal.SIGTERM))
        print("not reached")
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert "not reached" not in done.stdout
    assert "Resume with" in done.stderr
    part = iso.load(tmp_path / "run")
    assert 5_000 <= part.num_steps < 40_000


def test_sigterm_without_a_folder_promises_nothing():
    program = """
        from tests.reproducibility.test_interrupts import SETTINGS, energy, interrupting
        import isotherm as iso, jax.numpy as jnp, signal
        stop = interrupting(5_000, signal.SIGTERM)
        iso.sample(energy, iso.sgld(1e-3), init=jnp.zeros(2), callback=stop, block_length=500, **SETTINGS)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert "Its draws are lost. Pass out=... to be able to resume." in done.stderr
    assert "returned" not in done.stderr


def test_a_run_that_was_killed_is_read_up_to_its_last_checkpoint(tmp_path):
    whole = go(tmp_path / "run", checkpoint_every=0.0)
    (tmp_path / "run" / "finished.json").unlink()
    found = iso.load(tmp_path / "run")
    np.testing.assert_array_equal(found.draws[:], whole.draws[:])
    assert "Read at a checkpoint" in str(found.summary())


def test_a_script_can_be_run_twice(tmp_path):
    part = go(tmp_path / "run", resume=True, callback=interrupting(10_000))
    assert part.num_steps < 40_000
    with pytest.raises(ValueError, match=r"`out` must be a folder without a run; got .* Pass `resume=True`"):
        go(tmp_path / "run")
    again = go(tmp_path / "run", resume=True)
    np.testing.assert_array_equal(again.draws[:], go(tmp_path / "whole").draws[:])
    # Once it has ended, the same script only reads it.
    np.testing.assert_array_equal(go(tmp_path / "run", resume=True).draws[:], again.draws[:])


def test_a_run_with_other_settings_is_not_gone_on_with(tmp_path):
    go(tmp_path / "run")
    others: dict[str, Any] = SETTINGS | {"thinning": 5}
    with pytest.raises(ValueError, match=r"`thinning` must be 10, as in the run in .*; got 5"):
        iso.sample(
            energy,
            iso.sghmc(1e-3),
            init=iso.per_chain(np.zeros((4, 2), np.float32)),
            out=tmp_path / "run",
            resume=True,
            **others,
        )
    with pytest.raises(ValueError, match="`resume` must be given with `out`"):
        iso.sample(energy, iso.sgld(1e-3), init=jnp.zeros(2), resume=True, **SETTINGS)
