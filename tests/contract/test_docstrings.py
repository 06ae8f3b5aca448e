"""Every constructor says what it does, when to use it, what biases it, and what each of its arguments is."""

import inspect
import re
import typing

import pytest

import isotherm as iso
from isotherm.foundation.docstrings import defaults_of
from isotherm.networks.potential import NETWORK_DEFAULTS, NetworkOptions
from isotherm.samplers import METHODS


def arguments(constructor):
    """Names and defaults of all arguments, those of `**options` among them."""
    found = {}
    for parameter in inspect.signature(constructor).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            found[parameter.name] = parameter.default
            continue
        (kind,) = typing.get_args(parameter.annotation)
        found |= NETWORK_DEFAULTS if kind is NetworkOptions else defaults_of(kind)
    return found


def sections(text):
    """The entries of the section Args by name, and the titles of all sections."""
    entries = text.partition("    Args:\n")[2].partition("\n\n")[0]
    parts = re.split(r"^ {8}(?=\w+:)", entries, flags=re.MULTILINE)[1:]
    named = {part.partition(":")[0]: " ".join(part.split()) for part in parts}
    return named, re.findall(r"^    (\w+):$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", METHODS)
def test_a_constructor_is_documented(name):
    text = METHODS[name].__doc__ or ""
    summary, blank, *_ = text.splitlines()
    assert summary.endswith(".")
    assert blank == ""
    assert re.search(r"^        .* <- |^        .* = ", text, flags=re.MULTILINE), "the recursion"
    assert re.search(r"^    Use it [^\n]*", text, flags=re.MULTILINE)
    assert "; not " in " ".join(text.split())
    assert re.search(r"^    (Biased|Unbiased)\b", text, flags=re.MULTILINE)
    named, titles = sections(text)
    assert [title for title in titles if title != "Differs"] == ["Args", "Returns", "Example", "Reference"]
    assert f"iso.{name}(" in text.partition("    Example:\n")[2]
    assert_every_argument_is_listed(METHODS[name], named)


def assert_every_argument_is_listed(function, named):
    known = arguments(function)
    assert set(named) == set(known)
    for argument, default in known.items():
        end = "Required." if default is inspect.Parameter.empty else f"Default: {default!r}."
        assert named[argument].endswith(end), argument


@pytest.mark.parametrize("adapter", [iso.from_nnx, iso.from_linen, iso.from_equinox])
def test_help_on_networks_lists_every_option(adapter):
    named, _ = sections(adapter.__doc__ or "")
    assert_every_argument_is_listed(adapter, named)
    assert named["batch_size"] == "batch_size: n; None takes all data in every iteration. Default: None."


def test_shared_options_are_described_once():
    texts = [METHODS[name].__doc__ or "" for name in ("csgld", "csghmc", "icsgld", "icsghmc", "picsgld")]
    assert len({sections(text)[0]["zeta"] for text in texts}) == 1
    assert len(arguments(iso.icsgld)) == 15


def test_signatures_are_kept():
    assert str(inspect.signature(iso.msgd)).startswith("(step_size: ")
    assert inspect.signature(iso.msgd).parameters["friction"].default == 0.1
    assert iso.msgd.__module__ == "isotherm.samplers.independent"
