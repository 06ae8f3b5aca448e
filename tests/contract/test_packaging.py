"""What a package index shows of this package."""

import importlib.metadata
import pathlib
import re
import tomllib

from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


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
        assert link.startswith("#") or (ROOT / link.removeprefix(f"{base}/{folder}")).exists()
        assert "://" in link or link.startswith("#")


def test_addresses_are_those_of_one_repository():
    source = PROJECT["project"]["urls"]["Source"]
    assert all(address.startswith(source) for address in PROJECT["project"]["urls"].values())
    assert f"repository-code: {source}\n" in (ROOT / "CITATION.cff").read_text()


def declared():
    """The lowest version that is declared of every package."""
    optional = PROJECT["project"]["optional-dependencies"].values()
    lines = [*PROJECT["project"]["dependencies"], *(line for extra in optional for line in extra)]
    found = [Requirement(line) for line in lines if not line.startswith("isotherm[")]
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
