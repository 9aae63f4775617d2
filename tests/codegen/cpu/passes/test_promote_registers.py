from tests.codegen.cpu.passes.test_flatten_statements import rows
from tests.programs import compute, tensor
from tilec.codegen.cpu.kernel_ir import Array, Tile
from tilec.codegen.cpu.passes.flatten_statements import compute_tile
from tilec.codegen.cpu.passes.promote_registers import register_pieces
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import Const

MEMORIES = {
    "A": Array("A", "f32", 64 * 64, "operand"),
    "C": Array("C", "f32", 4 * 32, "local"),
    "Y": Array("Y", "f32", 4 * 32, "operand"),
}


def tile(text: str, extents: dict[str, int], target: str, source: str, shape: tuple[int, ...]) -> Tile:
    expr = tensor(text, extents)
    made = compute_tile(
        compute(expr, "t", "_b"),
        rows(target, *(extents[i] for i in expr.spatial)),
        {source: rows(source, *shape)},
        {"p": (Const(0), Const(3))},
    )
    assert made is not None
    return made


def pieces(*body: Tile) -> dict[str, tuple[tuple[int, int], ...]]:
    return register_pieces(body, MEMORIES, CpuTarget(), {})


INTO = tile("C[m, n] = A[m, n] + 1.0", {"m": 4, "n": 32}, "C", "A", (4, 32))
OUT_OF = tile("Y[m, n] = C[m, n] * 2.0", {"m": 4, "n": 32}, "Y", "C", (4, 32))


def test_a_tile_that_all_touch_in_the_same_vectors_is_registers():
    assert pieces(INTO, OUT_OF) == {"C": tuple((offset, 16) for offset in range(0, 128, 16))}


def test_other_pieces_of_the_same_elements_are_memory():
    columns = tile("Y[n, m] = C[m, n]", {"m": 4, "n": 32}, "Y", "C", (4, 32))
    assert pieces(INTO, columns) == {}


def test_vectors_that_have_an_element_in_common_are_memory():
    low = tile("C[n] = A[n] + 1.0", {"n": 16}, "C", "A", (16,))
    for first in (0, 15, 16):
        high = tile(f"Y[n] = C[n + {first}] * 2.0", {"n": 16}, "Y", "C", (64,))
        assert pieces(low, high) == {0: {"C": ((0, 16),)}, 15: {}, 16: {"C": ((0, 16), (16, 16))}}[first]


def test_an_array_that_a_guarded_read_leaves_is_memory():
    """The read at 128 stands behind a guard that it never passes."""
    beyond = tile("Y[n] = C[n + 64] * 2.0", {"n": 80}, "Y", "C", (160,))
    assert pieces(INTO, beyond) == {}


def test_a_short_reduction_over_a_tile_is_unrolled():
    columns = tile("Y[n] = sum(m, C[m, n])", {"m": 4, "n": 32}, "Y", "C", (4, 32))
    assert "C" in pieces(INTO, columns)


def test_results_of_a_horizontal_reduction_side_by_side_are_one_vector():
    sums = tile("C[m] = sum(n, A[m, n])", {"m": 7, "n": 64}, "C", "A", (7, 64))
    assert pieces(sums) == {"C": ((0, 4), (4, 2), (6, 1))}
    few = tile("C[m, o] = sum(n, A[m, n])", {"m": 4, "o": 3, "n": 64}, "C", "A", (4, 64))
    assert pieces(few) == {"C": ((0, 8), (8, 4))}


def test_loops_over_a_tile_make_it_memory():
    long = tile("C[i] = exp(A[i])", {"i": 4096}, "C", "A", (4096,))
    assert pieces(long) == {}


def test_positions_that_move_with_a_loop_variable_are_memory():
    expr = tensor("C[m, n] = A[m, n]", {"m": 8, "n": 32})
    moving = compute_tile(
        compute(expr, "t", "_b", m="p:p + 1"), rows("C", 4, 32), {"A": rows("A", 8, 32)}, {"p": (Const(0), Const(3))}
    )
    assert pieces(moving) == {}
