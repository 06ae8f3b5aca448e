"""Data sets, each in one file: `NAME.npz` with documented arrays, made from the publisher's files.

    from isotherm_thesis.data import get, load

    get("mnist", "data")
    arrays = load("mnist", "data")

No data are part of this package; they come from their publishers, under the publishers' terms.
"""

from isotherm_thesis.data.catalog import CATALOG, DataSet, Download, find
from isotherm_thesis.data.files import check, get, load

__all__ = ["CATALOG", "DataSet", "Download", "check", "find", "get", "load"]
