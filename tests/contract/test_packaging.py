"""What a package index shows of this package."""

import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

import isotherm
import isotherm_thesis
from isotherm.cli.main import main

ROOT = pathlib.Path(__file__).parents[2]
PROJECT, THESIS = (tomllib.loads((ROOT / f"{folder}pyproject.toml").read_text()) for folder in ("", "reproduction/"))


def shown_by_an_index():
    text = (ROOT / "README.md").read_text()
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    return text


def test_links_and_pictures_have_whole_addresses():
    source = PROJECT["project"]["urls"]["Source"]
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", shown_by_an_index())
    assert len(links) > 10
    for is_picture, link in links:
        base = source.replace("github.com", "raw.githubusercontent.com") if is_picture else source
        folder = "main/" if is_picture else "blob/main/"
        assert link.startswith("#") or (ROOT / link.removeprefix(f"{base}/{folder}").partition("#")[0]).exists()
        assert "://" in link or link.startswith("#")


def test_addresses_are_those_of_one_repository():
    source = PROJECT["project"]["urls"]["Source"]
    assert all(address.startswith(source) for address in PROJECT["project"]["urls"].values())
    assert f"repository-code: {source}\n" in (ROOT / "CITATION.cff").read_text()


def declared():
    """The lowest version that is declared of every package, by either project."""
    lines = []
    for project in (PROJECT["project"], THESIS["project"]):
        lines += [
            *project["dependencies"],
            *(line for extra in project["optional-dependencies"].values() for line in extra),
        ]
    found = [Requirement(line) for line in lines if not line.startswith("isotherm")]
    assert all([one.operator for one in each.specifier] == [">="] for each in found)
    return {each.name: next(iter(each.specifier)).version for each in found}


def lowest_pins():
    """The versions of `make test-lowest`."""
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def release(version):
    """A version without zeros at its end."""
    return tuple(int(part) for part in re.sub(r"(\.0)+$", "", version).split("."))


def test_declared_bounds_are_the_versions_that_are_lowest_pins():
    assert declared().keys() == lowest_pins().keys()
    assert {name: release(version) for name, version in declared().items()} == {
        name: release(version) for name, version in lowest_pins().items()
    }


def test_lowest_versions_allow_one_another():
    lowest, num_compared = lowest_pins(), 0
    for name, version in lowest.items():
        # What a release needs is known where that release is installed.
        if release(importlib.metadata.version(name)) != release(version):
            continue
        needed = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
        for one in needed:
            if one.name in lowest and (one.marker is None or one.marker.evaluate({"extra": ""})):
                num_compared += 1
                assert lowest[one.name] in one.specifier, f"{name} {version} needs {one}"
    assert num_compared > 0


def test_both_packages_have_one_version():
    assert isotherm_thesis.__version__ == isotherm.__version__


def test_the_wheel_of_the_library_has_no_experiment(tmp_path):
    names = zipfile.ZipFile(next(WheelBuilder(str(ROOT)).build(directory=str(tmp_path)))).namelist()
    assert "isotherm/cli/main.py" in names
    assert not [name for name in names if "thesis" in name.replace("samplers/thesis.py", "") or "cifar" in name]


def test_commands_of_the_other_package_say_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "mixture-resgld"])
    assert stop.value.code == 2
    assert "pip install isotherm-thesis" in capsys.readouterr().err
    main(["list", "--json"])
    assert json.loads(capsys.readouterr().out)["experiments"] == []


def test_commands_work_from_a_source_tree():
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "reproduction/src"))
    command = [sys.executable, "-m", "isotherm_thesis", "data", "list"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert "mnist" in done.stdout
