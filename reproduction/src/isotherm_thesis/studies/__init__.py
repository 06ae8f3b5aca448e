"""Studies behind defaults and claims: each prints a table, and writes its numbers to `results/`."""
