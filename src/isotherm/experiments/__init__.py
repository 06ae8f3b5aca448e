"""The demonstration, and one file per table or figure of the thesis."""

EXPERIMENTS: tuple[str, ...] = ()
