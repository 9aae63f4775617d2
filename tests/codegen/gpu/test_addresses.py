"""Where kernels read and write: turns of units, stripes of blocks, vectors, elements of other lanes, guarded ones."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.gpu.kernels import emulated, program, rows_program
from tests.emulator.kernels import needs_compiler
from tests.programs import buffer, compute, load, loop, tensor, whole
from tilec.ir.program import Allocate, Fill, StoreTiles

pytestmark = needs_compiler


def integers(*shape):
    return np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)


def from_shared(text, window, sizes, shape):
    """Rows of `y`, one a unit, from a window of `x` in shared memory."""
    node, m = tensor(text, sizes), sizes["m"]
    held = buffer("y_r", "reg", f"y[u:u + 1, 0:{sizes['n']}]")
    inner = [Allocate(held), compute(node, held.name, "_s", m="u:u + 1"), StoreTiles("y", held.name)]
    body = [*load(buffer("x_s", "shared", f"x[{window}]")), loop("u", m, *inner, scope="warp")]
    parameters = (whole("x", shape), whole("y", (m, sizes["n"])))
    return program("rows", parameters, ("y",), (loop("b", 1, *body, scope="block"),))


def test_units_take_turns_at_more_rows_than_there_are_units():
    x = integers(70, 3)
    made = rows_program(["y[m, n] = x[m, n] * 2.0"], {"m": 70, "n": 3}, dict.fromkeys("xy", "f32"), tile=70)
    found, text = emulated(made, {"x": x}, 32)
    assert "= unit; " in text
    np.testing.assert_array_equal(found["y"], x * 2)


@pytest.mark.parametrize("stripe", [2, 3])
def test_blocks_go_in_stripes_whose_last_one_is_narrower(stripe):
    node = tensor("y[m, n] = x[m, n] * 2.0", {"m": 5, "n": 12})
    at = {"m": "m1:m1 + 1", "n": "n1*4:n1*4 + 4"}
    window = ", ".join(at.values())
    x, y = (buffer(f"{name}_r", "reg", f"{name}[{window}]", shape=(1, 4)) for name in "xy")
    inner = loop("u", 1, *load(x), Allocate(y), compute(node, "y_r", "_r", **at), StoreTiles("y", "y_r"), scope="warp")
    nest = replace(loop("m1", 5, loop("n1", 3, inner, scope="block"), scope="block"), stripe=stripe)
    x = integers(5, 12)
    found, _ = emulated(program("striped", (whole("x", (5, 12)), whole("y", (5, 12))), ("y",), (nest,)), {"x": x}, 32)
    np.testing.assert_array_equal(found["y"], x * 2)


@pytest.mark.parametrize("first", [1, 2, 4])
def test_vectors_are_those_that_both_memories_have_aligned(first):
    """Rows that begin inside of those in memory."""
    x = integers(4, 40)
    made = from_shared(f"y[m, n] = x[m, n + {first}]", f"0:4, {first}:{first} + 32", {"m": 4, "n": 32}, (4, 40))
    found, _ = emulated(made, {"x": x}, 32)
    np.testing.assert_array_equal(found["y"], x[:, first : first + 32])


def test_windows_that_are_cut_off_store_what_is_inside_alone():
    """Five rows of eight, two a block: of the others nothing is touched."""
    node = tensor("y[m, n] = x[m, n] * 2.0", {"m": 8, "n": 8})
    rows = "m1*2 : minimum(m1*2 + 2, 5)"
    x, y = (buffer(f"{name}_s", "shared", f"{name}[{rows}, 0:8]", shape=(2, 8)) for name in "xy")
    unit = loop("u", 1, compute(node, "y_s", "_s", m=rows), scope="warp")
    blocks = loop("m1", 3, *load(x), Allocate(y), unit, StoreTiles("y", "y_s"), scope="block")
    made = program("cut", (whole("x", (8, 8)), whole("y", (8, 8))), ("y",), (blocks,))
    found, _ = emulated(made, {"x": integers(8, 8)}, 32)
    np.testing.assert_array_equal(found["y"][:5], integers(8, 8)[:5] * 2)
    assert set(found["y"][5:].tobytes()) == {93}, "as it was"


def test_what_is_read_under_a_condition_twice_is_read_under_it_alone():
    """The last row has no next one: there is nothing behind the tensor."""
    text = "where(n < 31, exp(x[m, n + 1] * 0.0) + 2.0, 1.0)"
    made = from_shared(f"y[m, n] = {text} * {text} + where(n < 31, exp(x[m, n + 1] * 0.0) + 2.0, 5.0)", "0:4, 0:32",
                       {"m": 4, "n": 32}, (4, 32))  # fmt: skip
    found, _ = emulated(made, {"x": integers(4, 32)}, 32)
    np.testing.assert_array_equal(found["y"], [[12.0] * 31 + [6.0]] * 4)


def test_indices_of_negative_dividends_are_rounded_down():
    x = integers(4, 40)
    made = from_shared("y[m, n] = x[m, maximum((4 - n) // 3, -2) + 2]", "0:4, 0:40", {"m": 4, "n": 32}, (4, 40))
    found, _ = emulated(made, {"x": x}, 32)
    n = np.arange(32)
    np.testing.assert_array_equal(found["y"], x[:, np.maximum((4 - n) // 3, -2) + 2])


@pytest.mark.parametrize(("p", "n"), [(4, 8), (7, 9)])
def test_one_element_of_another_lane_is_read_by_all(p, n):
    """Lanes lie along two iterators: those of the first are steps apart."""
    texts = ["y[m, p, n] = x[m, p] + x[m, n] * 16.0", "z[m] = y[m, 3, 2] + 0.5"]
    x = integers(3, n)
    found, text = emulated(rows_program(texts, {"m": 3, "p": p, "n": n}, dict.fromkeys("xyz", "f32")), {"x": x}, 32)
    assert "t_shfl(" in text
    np.testing.assert_array_equal(found["z"], x[:, 3] + x[:, 2] * 16 + 0.5)


def test_lanes_that_share_a_sum_count_what_was_there_once():
    """A sum in two steps of 64, each of which all lanes share."""
    node = tensor("s[m] = sum(k, x[m, k])", {"m": 3, "k": 128})
    row, chunk = "u:u + 1", "k1*64 : k1*64 + 64"
    s = buffer("s_r", "reg", f"s[{row}]", shape=(1,))
    staged = buffer("x_s", "shared", f"x[0:3, {chunk}]", shape=(3, 64))
    steps = loop("k1", 2, *load(staged), compute(node, "s_r", "_s", True, m=row, k=chunk))
    unit = loop("u", 3, Allocate(s), Fill("s_r", 0.0), steps, StoreTiles("s", "s_r"), scope="warp")
    x = integers(3, 128)
    made = program("sums", (whole("x", (3, 128)), whole("s", (3,))), ("s",), (loop("b", 1, unit, scope="block"),))
    found, text = emulated(made, {"x": x}, 32)
    assert "t_shfl_xor" in text
    np.testing.assert_array_equal(found["s"], x.sum(1))
