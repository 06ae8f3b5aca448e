"""Data sets: a catalog, downloads that are checked, and readers that trust no file.

    from isotherm.data import get, load

    get("mnist", "data")
    arrays = load("mnist", "data")

No file is part of isotherm; each comes from its publisher, under its publisher's terms.
"""

from isotherm.data.augment import Normalize
from isotherm.data.catalog import CATALOG, find
from isotherm.data.checking import FileStatus, check
from isotherm.data.dataset import DataSet, File
from isotherm.data.download import get
from isotherm.data.reading import load

__all__ = ["CATALOG", "DataSet", "File", "FileStatus", "Normalize", "check", "find", "get", "load"]
