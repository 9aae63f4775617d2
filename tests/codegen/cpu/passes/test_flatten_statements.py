from dataclasses import replace

from tests.programs import compute, tensor
from tilec.codegen.cpu.kernel_ir import Dim, Storage, Tile
from tilec.codegen.cpu.passes.flatten_statements import Operand, compute_tile, copy_tile, fill_tile, fuse
from tilec.ir.expr import Const
from tilec.ir.text import parse_expr, text_of

Z = Const(0)


def rows(name: str, *shape: int, at: str | None = None, ttype: str = "f32") -> Operand:
    """A row-major storage of a whole tensor, or of a window that starts at `at`."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    lo = tuple(map(parse_expr, at.split(","))) if at else (Z,) * len(shape)
    hi = tuple(parse_expr(f"{text_of(a)} + {n}") for a, n in zip(lo, shape, strict=True))
    return Operand(Storage(name, ttype, lo, tuple(strides)), lo, hi)


def sizes(dims: tuple[Dim, ...]) -> list[int | None]:
    return [d.size for d in dims]


def gemm(**box: str) -> Tile:
    expr = tensor("C[m, n] = sum(k, A[m, k] * B[n // 32, k, n % 32])", {"m": 64, "n": 128, "k": 8})
    tile = compute_tile(
        compute(expr, "C_b", "_b", **box),
        rows("C", 64, 128),
        {"A": rows("A", 64, 8), "B": rows("B", 4, 8, 32)},
        {"p": (Z, Const(3))},
    )
    assert tile is not None
    return tile


def test_accesses_become_flat_offsets():
    tile = gemm(m="0:14", n="p*32:p*32 + 32")
    assert sizes(tile.spatial) == [14, 32]
    assert sizes(tile.reduce) == [8]
    assert text_of(tile.value).replace("%", "") == "A[k + m * 8] * B[k * 32 + n + p * 256]"
    assert text_of(tile.target.index[0]).replace("%", "") == "m * 128 + n + p * 32"


def test_a_dimension_of_one_point_goes_away():
    tile = gemm(m="5:6", n="0:32", k="3:4")
    assert sizes(tile.dims) == [32]
    assert tile.reducer is None


def test_an_empty_box_is_no_tile():
    expr = tensor("C[m] = A[m]", {"m": 8})
    operands = {"A": rows("A", 8)}
    assert compute_tile(compute(expr, "C_b", "_b", m="3:3"), rows("C", 8), operands, {}) is None


def test_offsets_count_from_the_origin_of_the_window():
    box = ((parse_expr("h*4"), parse_expr("h*4 + 2")), (Z, Const(16)))
    tile = copy_tile(rows("T", 2, 16, at="h*4,0").storage, rows("X", 64, 16).storage, box, {})
    assert tile is not None
    assert text_of(tile.target.index[0]).replace("%", "d") == "d0 * 16 + d1"
    assert text_of(tile.value.index[0]).replace("%", "d") == "d0 * 16 + d1 + h * 64"


def test_neighbours_without_a_gap_fuse():
    box = ((Z, Const(4)), (Z, Const(6)), (Z, Const(5)))
    whole = copy_tile(rows("T", 4, 6, 5).storage, rows("X", 9, 6, 5).storage, box, {})
    assert sizes(fuse(whole).spatial) == [120]
    part = copy_tile(rows("T", 4, 6, 5).storage, rows("X", 9, 8, 5).storage, box, {})
    assert sizes(fuse(part).spatial) == [4, 30]
    assert sizes(fuse(whole, {"T"}, 6).spatial) == [24, 5]


def test_dimensions_that_are_looked_at_do_not_fuse():
    expr = tensor("Y[i, j] = where(j <= i, X[i, j], 0.0)", {"i": 4, "j": 4})
    tile = compute_tile(compute(expr, "Y_b", "_b"), rows("Y", 4, 4), {"X": rows("X", 4, 4)}, {})
    assert sizes(fuse(tile).spatial) == [4, 4]


def test_a_reduction_fuses_with_reduce_dimensions_only():
    expr = tensor("Y[c] = sum(h, w, X[c, h, w])", {"c": 3, "h": 4, "w": 5})
    tile = compute_tile(compute(expr, "Y_b", "_b"), rows("Y", 3), {"X": rows("X", 3, 4, 5)}, {})
    fused = fuse(tile)
    assert sizes(fused.spatial) == [3]
    assert sizes(fused.reduce) == [20]


def test_a_dynamic_outer_dimension_fuses_too():
    box = ((Z, parse_expr("minimum(h, 3)")), (Z, Const(6)))
    fused = fuse(copy_tile(rows("T", 4, 6).storage, rows("X", 9, 6).storage, box, {}))
    assert [text_of(d.extent) for d in fused.spatial] == ["minimum(h, 3) * 6"]


def test_loaded_indices_are_kept_inside_the_window_and_are_i64():
    expr = tensor("Y[s] = T[I[s]]", {"s": 9})
    operands = {"T": rows("T", 5), "I": rows("I", 9, ttype="i32")}
    tile = compute_tile(compute(expr, "Y_b", "_b"), rows("Y", 9), operands, {})
    assert text_of(tile.value).replace("%", "") == "T[minimum(maximum(i64(I[s]), 0), 4)]"


def test_indices_may_be_computed_in_other_types():
    expr = tensor("Y[s] = T[i64(floor(F[s] * 0.5))] + T[where(I[s] < 0, I[s] + 5, I[s])]", {"s": 9})
    operands = {"T": rows("T", 5), "F": rows("F", 9, ttype="f32"), "I": rows("I", 9, ttype="i32")}
    tile = compute_tile(compute(expr, "Y_b", "_b"), rows("Y", 9), operands, {})
    left, right = text_of(tile.value).replace("%", "").split(" + T[")
    assert left == "T[minimum(maximum(i64(floor(F[s] * 0.5)), 0), 4)]"
    assert right == "minimum(maximum(i64(where(I[s] < 0, I[s] + 5, I[s])), 0), 4)]"


def test_a_fill_is_a_tile_of_one_literal():
    tile = fill_tile(rows("T", 4, 6).storage, ((Z, Const(4)), (Z, Const(6))), 1.5, {})
    assert tile.value == Const(1.5)
    assert sizes(replace(fuse(tile)).spatial) == [24]


def test_rows_of_registers_stay_apart_but_reductions_into_them_fuse():
    expr = tensor("Y[g, i] = sum(r, s, X[g, i, r, s])", {"g": 2, "i": 3, "r": 5, "s": 7})
    tile = compute_tile(compute(expr, "Y_b", "_b"), rows("Y", 2, 3), {"X": rows("X", 2, 3, 5, 7)}, {})
    fused = fuse(tile, {"Y"}, 16)
    assert sizes(fused.spatial) == [2, 3]
    assert sizes(fused.reduce) == [35]
