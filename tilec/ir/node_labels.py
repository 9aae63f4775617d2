"""The names by which nodes of an ONNX model are known, in origins, messages and commands."""

from typing import Any


def label(node: Any, number: int) -> str:
    """A node's name, or its operator and position in the file when it has none."""
    return node.name or f"{node.op_type}_{number}"
