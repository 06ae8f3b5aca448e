"""The checks on a run: bias, agreement, couplings, networks."""
