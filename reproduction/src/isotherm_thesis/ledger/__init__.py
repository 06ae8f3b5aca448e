"""The ledger of the thesis' claims, and the tables of the README and the pages in `docs/`."""
