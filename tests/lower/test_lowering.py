"""Lowered programs against NumPy on the tile machine, and the form that they have."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lower.cases import ATTENTION, CASES, GPU_MATMUL, MATMUL, MLP, POOLED, Case, check, loops
from tilec.ir.expr import Binary, Var
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate, ComputeTile, Fill, LoadTiles, Loop, StoreTiles
from tilec.ir.program_text import program_text
from tilec.ir.text import parse_expr, text_of


@pytest.mark.slow_cases("convolution with epilogue")
@pytest.mark.feature("W31", "W14")
@pytest.mark.parametrize("name", CASES)
def test_programs_compute_what_the_nodes_do(name: str) -> None:
    check(CASES[name])


@pytest.mark.feature("W03", "W32")
def test_epilogue_in_registers() -> None:
    text = program_text(MATMUL.program())
    assert text == (Path(__file__).parent / "epilogue.txt").read_text()


def test_loop_names_are_unique_and_say_node_and_level() -> None:
    variables = [loop.variable for loop in loops(POOLED.program().body)]
    assert len(set(variables)) == len(variables)
    assert {"a_P_l2", "b_P_l2", "f_P_l2", "w_L_reg", "c_C_reg", "b_P_reg"} <= set(variables)


def test_a_name_that_is_taken_gets_a_number() -> None:
    case = replace(MATMUL, symbols=("m_Y_l2",))
    assert "m_Y_l2_2" in [loop.variable for loop in loops(case.program().body)]


@pytest.mark.feature("W09")
def test_a_step_as_long_as_the_extent_makes_no_loop() -> None:
    case = replace(MATMUL, steps={"reg": {"C": {"k": 20}}})
    assert "k_C_reg" not in [loop.variable for loop in loops(case.program().body)]
    assert not any(isinstance(s, Fill) for s in statements(case.program().body))
    check(case)


def test_reduce_loops_are_in_the_order_of_the_expression_and_not_of_the_table() -> None:
    case = CASES["convolution with epilogue"]
    (steps,) = case.steps["reg"].values()
    turned = replace(case, steps={"reg": {"C": dict(reversed(steps.items()))}})
    assert program_text(turned.program()) == program_text(case.program())
    names = [loop.variable for loop in loops(case.program().body)]
    assert [name for name in names if "_C_reg" in name] == [f"{i}_C_reg" for i in case.nodes()[0].reduce]


def test_order_of_tile_loops() -> None:
    case = replace(MATMUL, more={"order": {"reg": {"Y": ("n", "m")}}})
    names = [loop.variable for loop in loops(case.program().body)]
    assert names.index("n_Y_reg") < names.index("m_Y_reg")
    check(case)


def test_units_of_nodes() -> None:
    case = replace(MATMUL, more={"units": {"C": "vnni"}})
    units = {s.expr.tensor: s.unit for s in statements(case.program().body) if isinstance(s, ComputeTile)}
    assert units == {"C": "vnni", "Y": ""}


def test_loads_can_skip_levels() -> None:
    program, result = check(replace(MATMUL, more={"loads": {"A": ("reg",), "B": (), "Y": ("reg",)}}))
    moves = {(s.target, s.source) for s in statements(program.body) if isinstance(s, LoadTiles | StoreTiles)}
    assert ("A_reg", "A") in moves
    assert ("Y", "Y_reg") in moves
    assert not any("B" in pair for pair in moves)
    assert result.moved["l2"].written == 0
    assert result.moved["reg"].written == 50 * 40 * 4


def test_padding_is_absorbed_where_it_is_staged() -> None:
    staged, direct = (
        CASES["cached operands are read in place"].program(),
        CASES["guards stay without staging"].program(),
    )
    bodies = {s.expr.tensor: text_of(s.expr.body) for s in statements(staged.body) if isinstance(s, ComputeTile)}
    assert bodies["C"] == "sum(r, s, c, I[h + r - 1, w + s - 1, c] * W[r, s, c, f])"
    assert bodies["P"] == "max(r, s, L[a * 2 + r - 1, b * 2 + s - 1, f])"
    fills = [s.fill for s in statements(staged.body) if isinstance(s, LoadTiles) and s.target == "I_l2"]
    assert fills == [0.0]
    kept = [text_of(s.expr.body) for s in statements(direct.body) if isinstance(s, ComputeTile)]
    assert "where" in kept[0]


def test_windows_of_constant_width_inside_the_tensor() -> None:
    """A halo at the border moves the tile of its producer instead of cutting it."""
    program = POOLED.program()
    (held,) = [s.buffer for s in statements(program.body) if isinstance(s, Allocate) and s.buffer.name == "C_reg"]
    assert [text_of(n) for n in held.shape] == ["7", "4", "8"]
    assert text_of(held.lo[0]) == "minimum(maximum(minimum(a_P_l2 * 3, 4) * 2 - 1, 0), 6)"


def test_spread_tile_loops_stand_outside_reduce_loops() -> None:
    """Accumulators of threads stay in place; what their steps load is collective."""
    nest = {loop.variable: loop for loop in loops(GPU_MATMUL.program().body)}
    inner = [s.variable for s in statements(nest["n_Y_reg"].body) if isinstance(s, Loop)]
    assert inner == ["k_C_shared", "k_C_reg"]
    loads = [s.target for s in nest["k_C_shared"].body if isinstance(s, LoadTiles)]
    assert loads == ["A_shared", "B_shared"]
    assert nest["n_Y_reg"].kind == "spread"
    assert nest["k_C_shared"].kind == "serial"


def test_serial_tiles_relay_their_accumulators() -> None:
    nest = {loop.variable: loop for loop in loops(CASES["accumulators go through the cache"].program().body)}
    body = list(statements(nest["k_C_l2"].body))
    assert any(isinstance(s, LoadTiles) and (s.target, s.source) == ("C_reg", "C_l2") for s in body)
    assert any(isinstance(s, StoreTiles) and (s.target, s.source) == ("C_l2", "C_reg") for s in body)


def test_aligned_packed_weights_have_affine_windows() -> None:
    case = Case(
        ["Y[m, o] = sum(c, X[m, c] * P[o//32, c, o%32])"],
        {"m": 28, "o": 128, "c": 8},
        {"X": (28, 8), "P": (4, 8, 32)},
        {"l2": {"Y": {"m": 14, "o": 64}}, "reg": {"Y": {"o": 32}}},
    )
    program, _ = check(case)
    held = {s.buffer.name: s.buffer for s in statements(program.body) if isinstance(s, Allocate)}
    assert [text_of(e) for e in held["P_reg"].lo] == ["o_Y_l2 * 2 + o_Y_reg", "0", "0"]
    assert [text_of(e) for e in held["P_reg"].shape] == ["1", "8", "32"]


def test_a_level_with_units_always_has_a_spread_loop() -> None:
    (loop,) = [s for s in replace(MATMUL, tiles={}).program().body if isinstance(s, Loop)]
    assert (loop.variable, loop.kind, loop.scope) == ("unit_Y_l2", "spread", "core")


M, S = Var("M"), Var("S")
SYMBOLIC_MATMUL = replace(
    MATMUL, extents={"m": M, "n": 40, "k": 20}, inputs={**MATMUL.inputs, "A": (M, 20)}, symbols=("M",)
)


@pytest.mark.feature("B06", "B09")
@pytest.mark.parametrize("m", [0, 1, 14, 25, 50, 61])
def test_symbolic_rows(m: int) -> None:
    check(SYMBOLIC_MATMUL, M=m)


@pytest.mark.feature("B09")
def test_a_guard_allows_shifted_tails() -> None:
    free = [s.buffer for s in statements(SYMBOLIC_MATMUL.program().body) if isinstance(s, Allocate)]
    case = replace(SYMBOLIC_MATMUL, guard=parse_expr("M >= 25"))
    program, _ = check(case, M=61)
    held = [s.buffer for s in statements(program.body) if isinstance(s, Allocate)]
    assert text_of(held[0].lo[0]) == "minimum(m_Y_l2 * 25, M - 25)"
    assert text_of(free[0].lo[0]) == "m_Y_l2 * 25"


@pytest.mark.feature("B09")
def test_a_guard_bounds_what_is_allocated() -> None:
    case = replace(SYMBOLIC_MATMUL, tiles={}, steps={}, guard=parse_expr("M >= 1 and M <= 64"))
    program, _ = check(case, M=40)
    held = {s.buffer.name: s.buffer for s in statements(program.body) if isinstance(s, Allocate)}
    assert text_of(held["A_l2"].shape[0]) == "64"
    assert text_of(held["A_l2"].hi[0]) == "M"


@pytest.mark.feature("B06")
@pytest.mark.parametrize("sizes", [(1, 1), (13, 9), (0, 5)])
def test_symbolic_convolution(sizes: tuple[int, int]) -> None:
    inside = "0 <= h+r-1 and h+r-1 < M and 0 <= w+s-1 and w+s-1 < S"
    case = Case(
        [
            f"C[h, w, f] = sum(r, s, c, where({inside}, I[h+r-1, w+s-1, c], 0.0) * W[r, s, c, f])",
            "L[h, w, f] = maximum(C[h, w, f], 0.0)",
        ],
        {"h": M, "w": S, "f": 16, "r": 3, "s": 3, "c": 8},
        {"I": (M, S, 8), "W": (3, 3, 8, 16)},
        {"l2": {"L": {"h": 4}}, "reg": {"L": {"h": 1, "w": 7, "f": 8}}},
        {"reg": {"C": {"r": 1, "s": 1, "c": 4}}},
        {"C->L": "reg"},
        symbols=("M", "S"),
    )
    check(case, M=sizes[0], S=sizes[1])


@pytest.mark.feature("B06")
@pytest.mark.parametrize("sizes", [(2, 5), (5, 3), (1, 1)])
def test_symbolic_reshape(sizes: tuple[int, int]) -> None:
    case = Case(
        ["R[f] = X[f // S, f % S]", "Y[a, b] = R[a * S + b] + X[a, b]"],
        {"f": Binary("*", M, S), "a": M, "b": S},
        {"X": (M, S)},
        {"l2": {"Y": {"a": 2, "b": 3}}, "reg": {"Y": {"a": 1}}},
        symbols=("M", "S"),
    )
    check(case, M=sizes[0], S=sizes[1])


EMPTY = [
    (ATTENTION, "m", {"Q": 1}),
    (ATTENTION, "d", {"V": 2}),
    (ATTENTION, "b", {"Q": 0, "KT": 0, "V": 0}),
    (MLP, "m", {"A": 0}),
    (MLP, "n", {"W2": 1}),
    (GPU_MATMUL, "n", {"B": 1, "b": 0, "T": 1}),
    (POOLED, "f", {"W": 3}),
]


@pytest.mark.parametrize(("case", "iterator", "dims"), EMPTY)
def test_nothing_to_do(case: Case, iterator: str, dims: dict[str, int]) -> None:
    """Tensors without elements."""
    inputs = {t: [0 if dims.get(t) == d else n for d, n in enumerate(shape)] for t, shape in case.inputs.items()}
    _, result = check(replace(case, extents={**case.extents, iterator: 0}, inputs=inputs))
    assert all(output.size == 0 for output in result.outputs.values())


@pytest.mark.parametrize("case", [ATTENTION, MLP, GPU_MATMUL])
def test_sizes_of_one(case: Case) -> None:
    ones = {tensor: [1] * len(shape) for tensor, shape in case.inputs.items()}
    check(replace(case, extents=dict.fromkeys(case.extents, 1), inputs=ones))


def test_a_padded_dimension_beside_one_that_wraps_keeps_its_guard() -> None:
    case = Case(
        ["Y[h, o] = sum(r, where(0 <= h + r - 1 < 7, X[h + r - 1, o % 2, o // 2], 0.0) * W[o, r])"],
        {"h": 7, "o": 16, "r": 3},
        {"X": (7, 2, 8), "W": (16, 3)},
        {"l2": {"Y": {"o": 8}}, "reg": {"Y": {"h": 1}}},
    )
    check(case)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_a_part_runs_where_nothing_is_asked_of_its_last_node(size: int) -> None:
    """The first tiles of Y need U and nothing of C, which U's part ends with: a tile that is empty of C makes U."""
    e = {"s": 8, "n": 3}
    texts = [
        "U[s, n] = exp(X[s, n])",
        "C[s, n] = ceil(U[s, n])",
        "Y[s, n] = where(s < 4, U[s, n], C[s - 4, n])",
    ]
    case = Case(
        texts,
        e,
        {"X": (8, 3)},
        {"l2": {"Y": {"s": size}}, "reg": {"C": {"s": 1}, "Y": {"s": 1}}},
        connect={"U->C": "reg"},
        outputs=("C", "Y"),
    )
    check(case)
