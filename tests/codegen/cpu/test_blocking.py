import pytest

from tests.codegen.cpu.passes.test_flatten_statements import rows
from tests.programs import compute, tensor
from tilec.codegen.cpu.blocking import best_choice, blocked
from tilec.codegen.cpu.passes.flatten_statements import compute_tile, fuse
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.expr import constant_value
from tilec.ir.vector_pieces import vector_count

AVX512, AVX2 = CpuTarget(64, 32), CpuTarget(32, 16)


def cut(
    text: str,
    extents: dict[str, int],
    shapes: dict[str, tuple[int, ...]],
    local: bool = False,
    target=AVX512,
    ttypes=None,
):
    """The blocking of a tile over whole tensors, with iterator names instead of dimension names."""
    expr = tensor(text, extents)
    operands = {name: rows(name, *shape) for name, shape in shapes.items()}
    tile = compute_tile(compute(expr, "Y_b", "_b"), rows("Y", *(extents[i] for i in expr.spatial)), operands, {})
    assert tile is not None
    tile, ttypes = fuse(tile), ttypes or {**dict.fromkeys(shapes, "f32"), "Y": "f32"}
    blocking = blocked(tile, best_choice(tile, target, ttypes, local), target, ttypes, local)
    runs = {
        d.replace("%", ""): [(constant_value(r.start), constant_value(r.trips), r.width) for r in found]
        for d, found in blocking.runs.items()
    }
    return blocking, runs


def test_a_product_is_a_register_tile_along_its_columns():
    blocking, runs = cut(
        "Y[m, n] = sum(k, A[m, k] * B[k, n])", {"m": 14, "n": 32, "k": 100}, {"A": (14, 100), "B": (100, 32)}
    )
    assert (blocking.vector, blocking.horizontal, blocking.lanes) == ("%n", False, 16)
    assert runs == {"m": [(0, 1, 14)], "n": [(0, 1, 32)], "k": [(0, 50, 2)]}


def test_accumulators_and_operands_fit_the_registers():
    for m, n in ((100, 200), (7, 64), (3, 512), (64, 16)):
        for target in (AVX512, AVX2):
            _, runs = cut(
                "Y[m, n] = sum(k, A[m, k] * B[k, n])",
                {"m": m, "n": n, "k": 9},
                {"A": (m, 9), "B": (9, n)},
                target=target,
            )
            lanes = target.vector_bytes // 4
            vectors = max(vector_count(width, lanes) for _, _, width in runs["n"])
            height = max(width for _, _, width in runs["m"])
            assert vectors * height + vectors + 1 <= target.registers
            assert sum(trips * width for _, trips, width in runs["m"]) == m


@pytest.mark.parametrize(("dots", "steps"), [(1, 32), (8, 2)])
def test_blocks_of_several_dot_products_are_read_in_a_loop(dots, steps):
    """Hardware fetches ahead what instructions of a loop read; a block of 32 four-bit weights is eight dot products."""
    products = " + ".join(f"dot_u8_i8(W[k, {place}, n], X[m, k, {place}])" for place in range(dots))
    extents, shapes = {"m": 1, "n": 128, "k": 32}, {"W": (32, dots, 128), "X": (1, 32, dots)}
    _, runs = cut(f"Y[m, n] = sum(k, f32({products}))", extents, shapes, ttypes={"W": "u32", "X": "u32", "Y": "f32"})
    assert runs["k"] == [(0, 32 // steps, steps)]


def test_rows_are_reduced_along_the_vector():
    blocking, runs = cut("Y[m] = sum(n, X[m, n])", {"m": 4, "n": 1000}, {"X": (4, 1000)})
    assert (blocking.vector, blocking.horizontal) == ("%n", True)
    assert runs["m"] == [(0, 1, 4)]
    assert runs["n"][0] == (0, 31, 32)


def test_one_row_has_several_chains():
    blocking, _ = cut("Y[()] = sum(n, X[n])", {"n": 4096}, {"X": (4096,)})
    assert blocking.chains == 8


def test_a_row_takes_its_weights_in_one_stream():
    text, extents = "Y[m, n] = sum(k, A[m, k] * B[k, n])", {"m": 1, "n": 128, "k": 512}
    _, runs = cut(text, extents, {"A": (1, 512), "B": (512, 128)})
    assert runs["n"] == [(0, 1, 128)]
    _, runs = cut(text, {**extents, "m": 12}, {"A": (12, 512), "B": (512, 128)})
    assert runs["n"] == [(0, 2, 64)]


def test_points_have_several_chains_where_the_registers_hold_them():
    text, extents = "Y[m, n] = sum(k, A[m, k] * B[k, n])", {"m": 7, "n": 8, "k": 512}
    shapes = {"A": (7, 512), "B": (512, 8)}
    assert cut(text, extents, shapes, target=AVX2)[0].chains == 1
    shorter = {**shapes, "A": (6, 512)}
    assert cut(text, {**extents, "m": 6}, shorter, target=AVX2)[0].chains == 2
    assert cut("Y[()] = sum(n, X[n])", {"n": 4096}, {"X": (4096,)}, target=CpuTarget(32, 8))[0].chains == 4


def test_columns_are_reduced_side_by_side():
    blocking, _ = cut("Y[n] = max(m, X[m, n])", {"m": 100, "n": 64}, {"X": (100, 64)})
    assert (blocking.vector, blocking.horizontal) == ("%n", False)


def test_small_windows_are_unrolled():
    blocking, runs = cut(
        "Y[w, c] = sum(r, s, X[r, w + s, c] * D[r, s, c])",
        {"w": 7, "c": 16, "r": 3, "s": 3},
        {"X": (3, 9, 16), "D": (3, 3, 16)},
    )
    assert blocking.vector == "%c"
    assert runs["r"] == runs["s"] == [(0, 1, 3)]
    assert all(trips == 1 for found in runs.values() for _, trips, _ in found)


def test_elementwise_tiles_loop_over_a_few_vectors():
    blocking, runs = cut("Y[i, j] = maximum(X[i, j], 0.0)", {"i": 10, "j": 100}, {"X": (10, 100)})
    assert blocking.vector == "%i%j"
    assert runs["ij"] == [(0, 15, 64), (960, 1, 40)]
    _, heavy = cut("Y[i] = exp(X[i])", {"i": 1024}, {"X": (1024,)})
    assert heavy["i"] == [(0, 32, 32)]


def test_tiles_on_registers_are_unrolled_unless_they_are_long():
    _, runs = cut("Y[i, j] = maximum(X[i, j], 0.0)", {"i": 14, "j": 32}, {"X": (14, 32)}, local=True)
    assert all(trips == 1 for found in runs.values() for _, trips, _ in found)
    _, runs = cut("Y[i] = exp(X[i])", {"i": 4096}, {"X": (4096,)}, local=True)
    assert any(trips > 1 for found in runs.values() for _, trips, _ in found)


def test_transposes_are_cut_into_squares():
    blocking, runs = cut("Y[j, i] = X[i, j]", {"i": 37, "j": 40}, {"X": (37, 40)})
    assert (blocking.vector, blocking.across, blocking.lanes) == ("%i", "%j", 16)
    assert runs == {"j": [(0, 2, 16), (32, 8, 1)], "i": [(0, 2, 16), (32, 5, 1)]}


def test_wider_types_have_fewer_lanes():
    expr = tensor("Y[i] = f64(X[i])", {"i": 64})
    tile = compute_tile(compute(expr, "Y_b", "_b"), rows("Y", 64, ttype="f64"), {"X": rows("X", 64)}, {})
    ttypes = {"X": "f32", "Y": "f64"}
    assert blocked(tile, best_choice(tile, AVX512, ttypes, False), AVX512, ttypes, False).lanes == 8


def test_a_short_last_dimension_gives_way_to_a_long_reduction():
    """Three output channels would fill three of sixteen lanes."""
    blocking, _ = cut("Y[w, o] = sum(c, X[w, c] * W[c, o])", {"w": 4, "o": 3, "c": 64}, {"X": (4, 64), "W": (64, 3)})
    assert (blocking.vector, blocking.horizontal) == ("%c", True)


def test_sums_of_joined_inputs_are_unrolled_the_less_the_more_inputs_there_are():
    def steps(inputs: int) -> tuple[int, int]:
        """Loops and unrolled steps along the window."""
        joined = "X0[i + r]"
        for k in range(1, inputs):
            joined = f"where(i + r < {9 * (inputs - k)}, X{k}[i + r], {joined})"
        extents = {"i": 64, "r": 15}
        _, runs = cut(f"Y[i] = sum(r, {joined})", extents, {f"X{k}": (80,) for k in range(inputs)})
        return runs["r"][0][1:]

    assert steps(1) == steps(2) == (1, 15)
    assert steps(6) == (1, 15)
    assert steps(7)[1] < 15


@pytest.mark.parametrize(("target", "rounds"), [(AVX512, 3), (AVX2, 1)], ids=["avx512", "avx2"])
def test_a_loop_around_a_rolled_one_is_unrolled_where_registers_hold_what_its_rounds_read(target, rounds):
    _, runs = cut(
        "Y[w, o] = sum(s, c, X[w + s, c] * D[s, c, o])",
        {"w": 4, "o": 16, "s": 3, "c": 256},
        {"X": (6, 256), "D": (3, 300, 16)},
        target=target,
    )
    assert runs["s"] == [(0, 3 // rounds, rounds)]
    assert runs["c"] == [(0, 128, 2)]
