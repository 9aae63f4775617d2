"""A CPU emitter that is wrong on purpose: one kind of tile reads an operand one element too far.

The product has no switch for it: `emit.emit_tile`, which prints every tile of a kernel, is replaced by a test.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tilec.codegen.cpu.emit import emit_kernel
from tilec.codegen.cpu.kernel_ir import Tile
from tilec.ir.expr import Access, Binary, Call, Const, Expr, accesses, rebuild, walk


def plant(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """From now on tiles that call `function` read their first operand one element too far."""
    right = emit_kernel.emit_tile

    def wrong(tile: Tile, *rest: Any) -> None:
        calls = {part.fn for part in walk(tile.value) if isinstance(part, Call)}
        right(_shifted(tile) if function in calls else tile, *rest)

    monkeypatch.setattr(emit_kernel, "emit_tile", wrong)


def _shifted(tile: Tile) -> Tile:
    first = accesses(tile.value)[0]

    def moved(expr: Expr) -> Expr:
        if isinstance(expr, Access) and expr == first:
            return Access(expr.tensor, (Binary("+", expr.index[0], Const(1)),))
        return rebuild(expr, moved)

    return replace(tile, value=moved(tile.value))
