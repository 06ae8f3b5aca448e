"""Whether the cases are read at all: making their targets takes seconds, and all of them are long."""


def pytest_ignore_collect(collection_path, config):
    """Leaves them out where no long test is wanted."""
    return True if "not long" in config.getoption("markexpr") else None
