"""The folder of a run: draws, configuration, and what is written at the end. No pickle."""
