"""Data sets: a catalog, downloads that are checked, and readers that trust no file.

    from isotherm_thesis.data import get, load

    get("mnist", "data")
    arrays = load("mnist", "data")

No file is part of this package; each comes from its publisher, under its publisher's terms.
"""

from isotherm_thesis.data.catalog import CATALOG, find
from isotherm_thesis.data.checking import FileStatus, check
from isotherm_thesis.data.dataset import DataSet, File
from isotherm_thesis.data.download import get
from isotherm_thesis.data.reading import load

__all__ = ["CATALOG", "DataSet", "File", "FileStatus", "check", "find", "get", "load"]
