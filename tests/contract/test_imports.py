"""A folder may import only from those above it."""

import ast
import importlib
import pathlib

import pytest

from isotherm.coupling import Coupling

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "isotherm"
ORDER = [
    "foundation",
    "distributed",
    "potentials",
    "transforms",
    "networks",
    "estimators",
    "kernels",
    "coupling",
    "exchange",
    "contour",
    "targets",
    "engine",
    "samplers",
    "run",
    "diagnostics",
    "driver",
    "pilots",
    "api",
    "adapters",
    "predictive",
    "bandits",
    "minimization",
    "the package itself",
    "demo",
    "cli",
]
# Methods of a run, such as `summary`, which import what they call: diagnostics are functions of a run.
LATE = {("run/run.py", "diagnostics")}


def modules_of(path, own):
    """The names that a file of the package `own` imports, in whatever form, each as a list of its parts."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            before = own[: len(own) + 1 - node.level] if node.level else []
            module = before + (node.module.split(".") if node.module else [])
            names = [[*module, alias.name] for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [ast.literal_eval(node.args[0]).split(".")] if isinstance(node.args[0], ast.Constant) else []
        else:
            continue
        yield from names


def imports(path, source=SOURCE):
    """Folders that a file imports from: absolute, relative, or through the package itself."""
    names = modules_of(path, ["isotherm", *path.relative_to(source).parts[:-1]])
    found = [name[1] if len(name) > 1 else "" for name in names if name[0] == "isotherm"]
    # What the package offers by itself, such as `isotherm.sample`, needs all folders that it is made of.
    yield from (name if name in ORDER else "the package itself" for name in found)


def part_of(path, source=SOURCE):
    return path.relative_to(source).parts[0].removesuffix(".py")


def violations(files, source=SOURCE):
    found = [(path.relative_to(source).as_posix(), name) for path in files for name in imports(path, source)]
    return [
        (path, name)
        for path, name in found
        if ORDER.index(name) > ORDER.index(part_of(source / path, source)) and (path, name) not in LATE
    ]


def test_folders_import_only_from_above():
    files = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent != SOURCE]
    assert {part_of(path) for path in files} == set(ORDER) - {"the package itself"}
    assert violations(files) == []


def reaches_the_thesis(path, source=SOURCE):
    return any(
        name[0] == "isotherm_thesis" for name in modules_of(path, ["isotherm", *path.relative_to(source).parts[:-1]])
    )


def test_the_library_needs_no_reproduction():
    assert [path for path in SOURCE.rglob("*.py") if reaches_the_thesis(path)] == []


@pytest.mark.parametrize("text", ["import isotherm_thesis", "def late():\n    from isotherm_thesis.data import load"])
def test_an_import_of_the_reproduction_would_be_seen(text, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(text + "\n")
    assert reaches_the_thesis(wrong, tmp_path)


def test_names_that_have_moved_work_with_a_warning():
    for module, name, home in (
        ("isotherm.models", "MLP", "isotherm.networks"),
        ("isotherm.data", "load", "isotherm_thesis.data"),
        ("isotherm.data.augment", "Crop", "isotherm.networks"),
        ("isotherm.potentials", "Gaussian", "isotherm.networks"),
        ("isotherm.experiments", "EXPERIMENTS", "isotherm_thesis.experiments"),
        ("isotherm.targets", "modes9", "isotherm_thesis.targets"),
        ("isotherm.targets", "ten_functions", "isotherm_thesis.functions"),
        ("isotherm.bandits", "Mushrooms", "isotherm_thesis.bandits"),
        ("isotherm.models", "wide_resnet", "isotherm_thesis.models"),
        ("isotherm.networks", "WideResNet", "isotherm_thesis.models"),
        ("isotherm.predictive", "project", "isotherm_thesis.landscape"),
    ):
        with pytest.warns(
            DeprecationWarning, match=f"{module}.{name} has moved to {home}; the old name will be removed"
        ):
            found = getattr(importlib.import_module(module), name)
        assert found is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="has no attribute 'MPL'"):
        _ = importlib.import_module("isotherm.models").MPL


WRONG = {
    "from isotherm.driver import sample": "driver",
    "from isotherm import driver": "driver",
    "import isotherm.driver.drive": "driver",
    "from ..driver import sample": "driver",
    "from .. import driver": "driver",
    "def late():\n    from isotherm.driver import sample": "driver",
    "importlib.import_module('isotherm.driver')": "driver",
    "import isotherm as iso": "the package itself",
    "from isotherm import sample": "the package itself",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_import_would_be_seen(text, tmp_path):
    wrong = tmp_path / "kernels" / "wrong.py"
    wrong.parent.mkdir()
    wrong.write_text(text + "\n")
    assert violations([wrong], tmp_path) == [("kernels/wrong.py", WRONG[text])]


def test_files_are_short():
    long = {path.name: count for path in SOURCE.rglob("*.py") if (count := len(path.read_text().splitlines())) > 400}
    assert long == {}


def functions(path):
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


def test_only_what_users_call_takes_many_parameters():
    modules = [
        importlib.import_module(name)
        for name in ("isotherm", *(f"isotherm.{part}" for part in ("samplers", "potentials", "bandits", "api")))
    ]
    public = {name for module in modules for name in module.__all__}
    many = {
        f"{path.relative_to(SOURCE)}:{node.name}"
        for path in SOURCE.rglob("*.py")
        for node in functions(path)
        if len(node.args.posonlyargs + node.args.args + node.args.kwonlyargs) > 8 and node.name not in public
    }
    assert many == set()


def test_a_coupling_has_few_members():
    assert len([name for name in vars(Coupling) if not name.startswith("_")]) <= 10
