"""A folder may import only from those above it."""

import ast
import pathlib

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "isotherm"
ORDER = [
    "errors",
    "randomness",
    "schedules",
    "models",
    "data",
    "potentials",
    "estimators",
    "kernels",
    "coupling",
    "exchange",
    "contour",
    "targets",
    "sampling",
    "samplers",
    "predictive",
    "bandits",
    "advice",
    "descent",
    "minimisation",
    "userfile",
    "experiments",
    "bench",
    "cli",
]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isotherm."):
            yield (node.module or "").split(".")[1]
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[1] for name in node.names if name.name.startswith("isotherm."))


def part_of(path, source=SOURCE):
    return path.relative_to(source).parts[0].removesuffix(".py")


def violations(files, source=SOURCE):
    return [
        (str(path.relative_to(source)), name)
        for path in files
        for name in imports(path)
        if ORDER.index(name) > ORDER.index(part_of(path, source))
    ]


def test_folders_import_only_from_above():
    files = [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent != SOURCE]
    assert {part_of(path) for path in files} == set(ORDER)
    assert violations(files) == []


def test_a_wrong_import_would_be_seen(tmp_path):
    wrong = tmp_path / "kernels" / "wrong.py"
    wrong.parent.mkdir()
    wrong.write_text("from isotherm.sampling import sample\n")
    assert violations([wrong], tmp_path) == [("kernels/wrong.py", "sampling")]


def test_files_are_short():
    long = {path.name: count for path in SOURCE.rglob("*.py") if (count := len(path.read_text().splitlines())) > 300}
    assert long == {}
