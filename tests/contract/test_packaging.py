"""What a package index shows of this package."""

import pathlib
import re
import tomllib

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
