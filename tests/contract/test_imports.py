"""A folder may import only from those above it."""

import ast
import importlib
import pathlib

import pytest

from isotherm.coupling import Coupling

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "isotherm"
ORDER = [
    "foundation",
    "models",
    "data",
    "potentials",
    "transforms",
    "estimators",
    "kernels",
    "coupling",
    "exchange",
    "contour",
    "targets",
    "engine",
    "runs",
    "sampling",
    "samplers",
    "predictive",
    "bandits",
    "minimization",
    "the package itself",
    "experiments",
    "bench",
    "cli",
]


def imports(path, source=SOURCE):
    """Folders that a file imports from, in whatever form: absolute, relative, or through the package itself."""
    own = ["isotherm", *path.relative_to(source).parts[:-1]]
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
        found = [name[1] if len(name) > 1 else "" for name in names if name[0] == "isotherm"]
        # What the package offers by itself, such as `isotherm.sample`, needs all folders that it is made of.
        yield from (name if name in ORDER else "the package itself" for name in found)


def part_of(path, source=SOURCE):
    return path.relative_to(source).parts[0].removesuffix(".py")


def violations(files, source=SOURCE):
    return [
        (str(path.relative_to(source)), name)
        for path in files
        for name in imports(path, source)
        if ORDER.index(name) > ORDER.index(part_of(path, source))
    ]


def test_folders_import_only_from_above():
    files = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent != SOURCE]
    assert {part_of(path) for path in files} == set(ORDER) - {"the package itself"}
    assert violations(files) == []


WRONG = {
    "from isotherm.sampling import sample": "sampling",
    "from isotherm import sampling": "sampling",
    "import isotherm.sampling.driver": "sampling",
    "from ..sampling import sample": "sampling",
    "from .. import sampling": "sampling",
    "def late():\n    from isotherm.sampling import sample": "sampling",
    "importlib.import_module('isotherm.sampling')": "sampling",
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
        for name in ("isotherm", *(f"isotherm.{part}" for part in ("samplers", "potentials", "bandits", "sampling")))
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
