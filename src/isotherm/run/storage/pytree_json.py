"""Pytrees on disk: named leaves and a description of their structure in JSON, nothing that could be executed."""

from collections.abc import Callable
from typing import Any

import jax

from isotherm.foundation.positions import named_leaves


def describe_structure(tree: Any) -> Any:
    """The structure of a pytree in JSON, with the names of its leaves.

    Dicts, lists and tuples come back from `rebuild` as they were; other nodes come back as dicts of their named children.
    """
    return _describe(jax.tree.unflatten(jax.tree.structure(tree), list(named_leaves(tree))))


def rebuild(structure: Any, leaf_of: Callable[[str], Any]) -> Any:
    """The pytree that `describe_structure` described, with `leaf_of(name)` as its leaves."""
    if structure is None:
        return None
    if isinstance(structure, str):
        return leaf_of(structure)
    (kind, children), *_ = structure.items()
    if kind == "dict":
        return {key: rebuild(child, leaf_of) for key, child in children}
    return (list if kind == "list" else tuple)(rebuild(child, leaf_of) for child in children)


def _describe(node: Any) -> Any:
    if node is None or isinstance(node, str):
        return node
    if isinstance(node, dict):
        return {"dict": [[str(key), _describe(child)] for key, child in node.items()]}
    if isinstance(node, (list, tuple)) and not hasattr(node, "_fields"):
        return {type(node).__name__: [_describe(child) for child in node]}
    children = jax.tree_util.tree_leaves_with_path(node, is_leaf=lambda other: other is not node)
    return {"dict": [[jax.tree_util.keystr(path, simple=True), _describe(child)] for path, child in children]}
