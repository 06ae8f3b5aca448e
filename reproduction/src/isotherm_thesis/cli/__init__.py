"""The commands `isotherm reproduce`, `bench` and `data`."""
