"""Rounded quotients by literals in vectors: the same integers as by division."""

from pathlib import Path

import numpy as np
import pytest
from scheduler.graphs import make_graph

from tests.verify.builds import generated
from tilec.codegen.cpu.emit.rounded_quotients import rounded_quotient_of, rounds_alike
from tilec.ir.expr import Binary, Call, Const, Var
from tilec.runtime import load
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

SCALES = [float(np.float32(s)) for s in (0.0235294122248888, 0.1, 3.0, 0.5, 1e-3, 17.3)]
LIMITS = {"u8": (0, 255), "i8": (-128, 127)}


@pytest.mark.parametrize("ttype", sorted(LIMITS))
def test_integers_are_those_of_divisions(tmp_path: Path, ttype: str) -> None:
    """Halves and the floats next to them, zeros, the largest, infinite and no numbers."""
    near = [(np.arange(-300, 300) + 0.5).astype(np.float32) * np.float32(s) for s in SCALES]
    near += [np.nextafter(x, np.float32(side)) for x in near for side in (-np.inf, np.inf)]
    ends = np.asarray([0.0, -0.0, 1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32)
    x = np.concatenate([*near, np.repeat(ends, 32)])
    texts = [(f"y{n}[i] = {ttype}(round(x[i] / {s!r}) + 3.0)", {"i": x.size}) for n, s in enumerate(SCALES)]
    names = [f"y{n}" for n in range(len(SCALES))]
    graph = make_graph({"x": (x.size,)}, texts, names, ttypes=dict.fromkeys(names, ttype))
    generated(schedule(graph, resolve_device("host"), ScheduleOptions()), tmp_path, "host")
    made = load(tmp_path, threads=1).run({"x": x})
    low, high = LIMITS[ttype]
    for name, scale in zip(names, SCALES, strict=True):
        with np.errstate(over="ignore"):
            exact = np.clip(np.rint(x / np.float32(scale)) + 3, low, high)
        np.testing.assert_array_equal(made[name], np.where(np.isnan(exact), 0, exact).astype(made[name].dtype))


def test_literals_whose_quotients_would_round_otherwise_are_divided_by() -> None:
    quotient = Binary("/", Var("x"), Const(0.1))
    assert rounded_quotient_of(Call("round", (quotient,)), "u8") is not None
    assert rounded_quotient_of(Call("round", (quotient,)), "i32") is None
    assert rounded_quotient_of(quotient, "u8") is None
    for offset, tried in (
        (255.0, True),
        (-128.0, True),
        (1000.0, False),
    ):  # of which halves far out become small integers
        assert (rounded_quotient_of(Binary("+", Call("round", (quotient,)), Const(offset)), "u8") is not None) == tried
    for divisor in (0.0, float("inf"), float("nan"), 1e-30, 1e38):
        assert not rounds_alike(divisor, 8)
