"""Weights in slabs: the same bytes as at once, whatever the slabs."""

from pathlib import Path

import numpy as np
import pytest

from tilec.codegen import prepare
from tilec.codegen.prepare import prepare_weights
from tilec.ir.expr import Const
from tilec.ir.graph import Inline, Node, Port, Tensor
from tilec.ir.plan import Cost, Group, Plan
from tilec.ir.text import parse_tensor


def plan(rows: int, columns: int) -> Plan:
    """A weight that is transposed, and that with one added; a group reads both."""
    values = tuple(float(v) for v in range(rows * columns))
    moved = parse_tensor("t[j, i] = w[i, j]", {"i": rows, "j": columns})
    more = parse_tensor("u[j, i] = t[j, i] + 1.0", {"i": rows, "j": columns})
    sums = parse_tensor("y[j, i] = t[j, i] + u[j, i]", {"i": rows, "j": columns})
    shape = (Const(columns), Const(rows))
    tensors = {name: Tensor(shape, "f32") for name in ("t", "u", "y")} | {"w": Tensor(shape[::-1], "f32")}
    group = Group("g", (Node(sums),), ("y",), {}, (), Cost({}, {}, {}))
    return Plan(
        "m", "d", (), (), (), (Port("y", "y"),), tensors, {"w": Inline(values)}, (Node(moved), Node(more)), (group,), ()
    )


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 1), (7, 16), (16, 7)])
@pytest.mark.parametrize("slab", [1, 40, 1 << 20])
def test_slabs_give_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, slab: int
) -> None:
    monkeypatch.setattr(prepare, "SLAB", slab)
    found = prepare_weights(plan(rows, columns), tmp_path, tmp_path)
    data = (tmp_path / prepare.FILE).read_bytes()
    w = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    for name, expected in (("t", w.T), ("u", w.T + 1)):
        place = found.places[name]
        held = np.frombuffer(data, np.float32, rows * columns, place.offset).reshape(columns, rows)
        np.testing.assert_array_equal(held, expected)
        assert place.offset % 64 == 0


def test_a_large_weight_is_never_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    evaluated = prepare.evaluate_box

    def watched(expr, points, ttype):  # type: ignore[no-untyped-def]
        nonlocal largest
        result = evaluated(expr, points, ttype)
        largest = max(largest, result.nbytes)
        return result

    monkeypatch.setattr(prepare, "SLAB", 256)
    monkeypatch.setattr(prepare, "evaluate_box", watched)
    prepare_weights(plan(16, 64), tmp_path, tmp_path)
    assert 0 < largest <= 256
