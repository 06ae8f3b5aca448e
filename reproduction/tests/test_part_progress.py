"""Progress of work in parts: lines for files, a display for terminals."""

import io
import time
from typing import Any

import jax.numpy as jnp
import pytest
from rich.console import Console

import isotherm as iso
from isotherm_thesis.part_progress import PartProgress


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def console(is_terminal):
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=120, color_system=None)


def written(shown: Any) -> str:
    return shown.file.getvalue()


def lines(num_parts, starts, texts):
    shown, clock = console(False), Clock()
    with PartProgress(shown, num_parts, clock) as log:
        for clock.now, text in zip(starts, texts, strict=True):
            log(text)
    return written(shown).splitlines()


def test_lines_have_the_time_so_far_and_what_is_left():
    assert lines(4, (0.0, 10.0, 200.0, 15_000.0), "ABCD") == [
        "1 of 4: A ...",
        "2 of 4: B ... (10 s so far, about 30 s left)",
        "3 of 4: C ... (3 min so far, about 3 min left)",
        "4 of 4: D ... (4.2 h so far, about 83 min left)",
    ]


def test_an_unknown_or_wrong_number_of_parts_is_not_shown():
    assert lines(None, (0.0, 10.0), "AB") == ["A ...", "B ... (10 s so far)"]
    assert lines(1, (0.0, 10.0), "AB")[1] == "B ... (10 s so far)"


def test_a_remark_is_no_part():
    assert lines(2, (0.0, 10.0, 20.0), ("A", "  stopped", "B"))[1:] == [
        "  stopped",
        "2 of 2: B ... (20 s so far, about 20 s left)",
    ]


@pytest.mark.parametrize(("now", "left"), [(10.0, "60 s"), (40.0, "30 s"), (200.0, "30 s")])
def test_the_estimate_falls_until_the_part_takes_longer_than_those_before(now, left):
    clock = Clock()
    with PartProgress(console(False), 3, clock) as log:
        log("A")
        clock.now = 30.0
        log("B")
        assert log.told(30.0 + now - 10.0).endswith(f"about {left} left")


def test_a_terminal_shows_the_bars_of_runs_inside(capsys):
    shown = console(True)
    with PartProgress(shown, 2) as log:
        log("the first")
        # Longer than the display waits before it is drawn anew.
        settings = {"num_steps": 50, "init": jnp.zeros(2), "callback": lambda _: time.sleep(0.8)}
        iso.sample(lambda x: jnp.sum(x**2), iso.sgld(0.1), **settings)
        log("the second")
    printed = written(shown)
    assert "1 of 2: the first: " in printed
    assert "2 of 2" in printed
    assert "gradients/s" in printed
    assert capsys.readouterr().err == ""


def test_runs_draw_their_own_bars_again_afterwards(capsys):
    with PartProgress(console(True), 1):
        pass
    iso.sample(lambda x: jnp.sum(x**2), iso.sgld(0.1), num_steps=50, init=jnp.zeros(2), progress=True)
    assert "sgld" in capsys.readouterr().err
