"""What the configuration of a run says of its parts: which kinds they are, and what is inside of what."""

from typing import Any


def is_a(described: Any, name: str) -> bool:
    """Whether a part that a configuration describes is of a class, or of one that extends it.

    Example:
        >>> is_a({"class": "Mine", "extends": ["Corrected"]}, "Corrected")
        True
    """
    return isinstance(described, dict) and (described.get("class") == name or name in described.get("extends", ()))


def innermost_potential(config: dict[str, Any]) -> dict[str, Any]:
    """What the configuration says of the potential, without what is wrapped around it."""
    found = config.get("potential") or {}
    while isinstance(found.get("inner"), dict):
        found = found["inner"]
    return found


def reads_whole_energy(config: dict[str, Any]) -> bool:
    """Whether the energies that a run recorded are those that its coupling read."""
    return bool(innermost_potential(config).get("coupling_includes_prior", True))
