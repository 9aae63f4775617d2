"""A CPU emitter that is wrong on purpose: one kind of tile computes with one and a half times an operand.

The product has no switch for it: `emit.emit_tile`, which prints every tile of a kernel, is replaced by a test. A wrong
generator is another one: what it makes is not what the cache of object files has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tilec.codegen.cpu import canonical_kernel
from tilec.codegen.cpu.emit import emit_kernel
from tilec.codegen.cpu.kernel_ir import Tile
from tilec.ir.expr import Binary, Call, Const, Expr, accesses, rebuild, walk


def plant(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """From now on tiles that call `function` take their first operand one and a half times."""
    right = emit_kernel.emit_tile

    def wrong(tile: Tile, *rest: Any) -> None:
        calls = {part.fn for part in walk(tile.value) if isinstance(part, Call)}
        right(_scaled(tile) if function in calls else tile, *rest)

    monkeypatch.setattr(emit_kernel, "emit_tile", wrong)
    monkeypatch.setattr(canonical_kernel, "generator", lambda: f"one that is wrong about {function}")


def _scaled(tile: Tile) -> Tile:
    first = accesses(tile.value)[0]

    def scaled(expr: Expr) -> Expr:
        return Binary("*", expr, Const(1.5)) if expr == first else rebuild(expr, scaled)

    return replace(tile, value=scaled(tile.value))
