"""The commands of this package without installation: `PYTHONPATH=src:reproduction/src python -m isotherm_thesis reproduce NAME`."""

from isotherm.cli.main import main
from isotherm_thesis.cli.bench import Bench
from isotherm_thesis.cli.data import Data
from isotherm_thesis.cli.reproduce import Reproduce

if __name__ == "__main__":
    main(extra={"reproduce": Reproduce, "bench": Bench, "data": Data})
