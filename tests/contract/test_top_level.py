"""What `import isotherm` offers, and what it does not import before it is needed."""

import ast
import inspect
import pathlib
import subprocess
import sys

import pytest

import isotherm as iso

LIGHT = (["--help"], ["--version"], ["list"], ["sample", "--help"], ["reproduce", "--help"], ["bench", "--help"])
SCRIPT = """
import sys
from isotherm.cli.main import main
try:
    main({arguments})
except SystemExit as end:
    assert end.code == 0
print(sorted({{"jax", "numpy", "scipy", "optax", "matplotlib"}} & set(sys.modules)))
"""


def printed(script):
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return found.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_help_and_lists_import_nothing_heavy(arguments):
    assert printed(SCRIPT.format(arguments=arguments)) == "[]"


def test_a_heavy_import_would_be_seen():
    assert printed("import isotherm; isotherm.sgld" + SCRIPT.format(arguments=["--version"])) != "[]"


def seen_by_type_checkers():
    """Names in the block of imports under `TYPE_CHECKING`, each with the object that it stands for."""
    blocks = [node for node in ast.parse(inspect.getsource(iso)).body if isinstance(node, ast.If)]
    (block,) = [block for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING"]
    found = {}
    exec(compile(ast.Module(block.body, []), "imports", "exec"), found)
    return {name: value for name, value in found.items() if not name.startswith("__")}


def test_names_are_those_that_type_checkers_see():
    found = seen_by_type_checkers()
    assert sorted(found) == sorted(iso.__all__)
    assert {name: getattr(iso, name) for name in found} == found


def test_names_complete_and_misspelled_ones_are_refused():
    assert set(iso.__all__) <= set(printed("import isotherm; print(*dir(isotherm))").split())
    for name, meant in {"smaple": "sample", "sgdl": "sgld", "resgdl": "resgld", "from_linnen": "from_linen"}.items():
        with pytest.raises(
            AttributeError, match=rf"module 'isotherm' has no attribute '{name}'. Did you mean '{meant}'\?$"
        ):
            getattr(iso, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'xyzzy'$"):
        getattr(iso, "xyzzy")  # noqa: B009


def test_no_folder_has_the_name_of_a_function():
    # Importing a folder binds its name in the package, where it would hide the function.
    folders = {path.stem for path in pathlib.Path(iso.__file__).parent.iterdir()}
    assert all(inspect.ismodule(getattr(iso, name)) for name in folders & set(iso.__all__))
