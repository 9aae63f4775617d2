"""Products whose activations may be rounded, as a recipe's `compute` or the model asks (Ladder, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tilec.errors import ConfigError
from tilec.ir.expr import Binary, operands
from tilec.ir.graph import Node, Rounding

Compute = Mapping[str, str]
"""Pattern of a weight's name -> how a product with it is computed; the first pattern that matches counts."""

EXACT = "exact"
"""Activations are not rounded."""


def roundings_of(
    nodes: Sequence[Node],
    constants: Mapping[str, str],
    asked: Mapping[str, Rounding],
    compute: Compute,
    file: str,
) -> dict[str, Rounding]:
    """Product -> how its activations are rounded.

    `constants` maps tensors to their names in the model, those of weights that were rounded on import among them,
    `asked` is what nodes of the model ask for. Raises ConfigError for a pattern that matches no weight of a product.
    """
    weights = _weights(nodes, constants)
    for pattern in compute:
        if not any(fnmatchcase(name, pattern) for names in weights.values() for name in names):
            some = ", ".join(list(dict.fromkeys(name for names in weights.values() for name in names))[:5]) or "none"
            raise ConfigError(f"compute: {pattern!r} matches no weight", file, f"Weights of products are {some}.")
    found = {name: rounding for name, rounding in asked.items() if name in weights}
    for product, names in weights.items():
        asked_for = next((how for p, how in compute.items() if any(fnmatchcase(name, p) for name in names)), None)
        if asked_for is not None:
            found.pop(product, None)
            if asked_for != EXACT:
                found[product] = Rounding(asked_for)
    return found


def _weights(nodes: Sequence[Node], constants: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Sum of products -> names of the constants that make one of its factors, and no other tensors."""
    made: dict[str, tuple[str, ...]] = {name: (called,) for name, called in constants.items()}
    found = {}
    for node in nodes:
        read = operands(node.expr)
        if node.name in constants:
            continue
        if read and all(tensor in made for tensor in read):
            made[node.name] = tuple(dict.fromkeys(name for tensor in read for name in made[tensor]))
        elif node.expr.reducer == "sum" and isinstance(node.expr.value, Binary) and node.expr.value.op == "*":
            names = tuple(dict.fromkeys(name for tensor in read if tensor in made for name in made[tensor]))
            if names:
                found[node.name] = names
    return found
