"""Many lanes as one axis of an expression: the same as lane by lane, wherever boxes and windows begin."""

import numpy as np
import pytest

from tests.programs import buffer, tensor
from tilec.ir.evaluate import Points, TensorWindow, evaluate_box
from tilec.machine.batch import batch
from tilec.machine.memory import BufferInstances, reserve
from tilec.machine.reads import defined, followed

RNG = np.random.default_rng(5)
ORIGINS = np.array([0, 3, 5])
LANES = len(ORIGINS)


def held(name: str, window: str, array: np.ndarray) -> BufferInstances:
    """A parameter with one unit."""
    ends = np.array([array.shape])
    made = reserve(buffer(name, "dram", window), (), np.zeros(1, np.int64), np.zeros_like(ends), ends, array.shape)
    made.array = array[None]
    made.written[...] = True
    return made


def windows_of(array: np.ndarray, lo: np.ndarray, width: int) -> BufferInstances:
    """Each lane has a window of its own onto a vector, narrower where the vector ends."""
    hi = np.minimum(lo + width, len(array))
    made = reserve(buffer("X", "shared", "X[0:9]"), ("i1",), np.arange(LANES), lo[:, None], hi[:, None], (width,))
    for row, (a, b) in enumerate(zip(lo, hi, strict=True)):
        made.array[row, : b - a] = array[a:b]
        made.written[row] = True
    return made


EXPRESSIONS = {
    "moved": "Y[i] = X[i + 1]",
    "back": "Y[i] = X[8 - i]",
    "strided": "Y[i] = X[i * 2 - s]",
    "guarded": "Y[i] = where(i + s < 6, X[i + 1], 0.0 - 1.0)",
    "valued": "Y[i] = X[i] * f32(i + s)",
    "divided": "Y[i] = X[i // 2 + i % 2]",
    "summed": "Y[i] = sum(k, X[i + k] * W[k])",
    "highest": "Y[i] = max(k, X[i + 2 - k])",
}


@pytest.mark.parametrize("text", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_a_batch_equals_its_lanes(text):
    extents = {"i": 8, "k": 3} if "k," in text else {"i": 8}
    expr = tensor(text, extents)
    x, w, shift = RNG.normal(size=20).astype(np.float32), RNG.normal(size=3).astype(np.float32), np.array([0, 2, 1])
    operands = {"X": held("X", "X[0:20]", x), "W": held("W", "W[0:3]", w)}
    widths = dict.fromkeys(expr.iterators, 3)
    origin = {i: ORIGINS if i == "i" else np.zeros(LANES, np.int64) for i in expr.iterators}
    rows = np.zeros(LANES, np.int64)
    done = batch(expr, LANES, origin, widths, {"s": shift}, {t: (h, rows) for t, h in operands.items()}, ())
    assert defined(done)
    found = evaluate_box(done.expr, done.points)
    for lane, begin in enumerate(ORIGINS):
        box = {i: ((begin, begin + 3) if i == "i" else (0, 3)) for i in expr.iterators}
        whole = {"X": TensorWindow(x, (0,)), "W": TensorWindow(w, (0,))}
        expected = evaluate_box(expr, Points(box, whole, {"s": int(shift[lane])}))
        np.testing.assert_allclose(found[lane], expected, rtol=1e-6)


def reading(text: str, have: BufferInstances, by_place: tuple[str, ...] = (), **variables: np.ndarray):
    expr = tensor(text, {"i": 20})
    operands = {"X": (have, np.arange(LANES))}
    return batch(expr, LANES, {"i": ORIGINS}, {"i": 3}, variables, operands, by_place)


def test_windows_of_every_lane_count():
    x = RNG.normal(size=9).astype(np.float32)
    have = windows_of(x, ORIGINS, 4)
    assert have.hi[:, 0].tolist() == [4, 7, 9]
    done = reading("Y[i] = X[i + 1]", have)
    assert defined(done)
    np.testing.assert_array_equal(evaluate_box(done.expr, done.points), [x[o + 1 : o + 4] for o in ORIGINS])
    assert not defined(reading("Y[i] = X[i + 2]", have))
    assert not defined(reading("Y[i] = X[i - 1]", have))


def test_one_element_that_was_not_written_is_seen_by_who_reads_it():
    have = windows_of(np.zeros(9, np.float32), ORIGINS, 4)
    have.written[1, 0] = False
    assert defined(reading("Y[i] = X[i + 1]", have))
    assert not defined(reading("Y[i] = X[i]", have))
    assert defined(reading("Y[i] = where(i > s, X[i], 0.0)", have, s=ORIGINS))
    assert not defined(reading("Y[i] = where(i >= s, X[i], 0.0)", have, s=ORIGINS))


def test_what_data_index_is_counted_lane_by_lane():
    table, index = RNG.normal(size=6).astype(np.float32), np.array([2, 2, 2, 0, 5, 2, 1, 0], np.int64)
    expr = tensor("Y[i] = T[J[i]]", {"i": 8})
    rows = np.zeros(LANES, np.int64)
    operands = {"T": (held("T", "T[0:6]", table), rows), "J": (held("J", "J[0:8]", index), rows)}
    done = batch(expr, LANES, {"i": ORIGINS}, {"i": 3}, {}, operands, ("T",))
    assert defined(done)
    assert followed(done, "T").tolist() == [1, 3, 3]
    np.testing.assert_array_equal(evaluate_box(done.expr, done.points), [table[index[o : o + 3]] for o in ORIGINS])
    far = {**operands, "J": (held("J", "J[0:8]", index + 1), rows)}
    assert not defined(batch(expr, LANES, {"i": ORIGINS}, {"i": 3}, {}, far, ("T",)))
