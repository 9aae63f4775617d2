"""The kind of fusion of a group."""

from __future__ import annotations

from typing import Literal

from tilec.ir.plan import Group

Kind = Literal["stitched", "register", "single"]
"""Several nodes that share tiles in memory, several that share registers only, a single one."""


def kind_of(group: Group) -> Kind:
    """The kind of a group."""
    if len(group.nodes) == 1:
        return "single"
    highest = group.variants[0].levels[-1]
    return "register" if set(group.connect.values()) <= {highest} else "stitched"
