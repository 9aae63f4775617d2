"""Rescaling rules: which reductions share a loop, that they compute what two passes do, and how halves are merged."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.lower.cases import ATTENTION, SOFTMAX, Case, check
from tests.scheduler.rescaled import ROWS, attention, normalized, only_chain, planned
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const, TensorExpr, Var
from tilec.ir.graph import Tensor
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate
from tilec.ir.text import tensor_text, text_of
from tilec.lower.checks.check_plan import overflows
from tilec.lower.counts.footprint import footprint
from tilec.lower.counts.traffic import traffic
from tilec.machine import execute
from tilec.scheduler.online.shared_reductions import find_shared_reductions, merge_shared_reductions

LONG = 100_000
Arrays = Mapping[str, np.ndarray]


def case(
    texts: Sequence[str], outputs: Sequence[str] = (), ttypes: Mapping[str, str] | None = None, **extents: int
) -> Case:
    """Nodes over rows `s` and a matrix `A` of them, with a vector for each column in `V`."""
    extents = {"s": 3, "r": 24, "d": 2, "q": 24, "t": 24, **extents}
    inputs = {"A": (extents["s"], extents["r"]), "B": (extents["s"], extents["r"]), "V": (extents["r"], extents["d"])}
    used = {name: shape for name, shape in inputs.items() if any(f"{name}[" in text for text in texts)}
    return Case(texts, extents, used, outputs=outputs, ttypes=ttypes or {})


def test_reductions_of_one_element_share_no_loop() -> None:
    softmax = case(ROWS[:4], r=1)
    assert find_shared_reductions(softmax.nodes(), softmax.plan().tensors, ("R",)) == ()
    assert only_chain(case(ROWS[:4], r=2)).members == ("X", "Z")


def rules(case: Case) -> dict[str, str]:
    return {name: text_of(entry.rescale) for name, entry in only_chain(case).shared.items()}


# which


@pytest.mark.feature("W09")
def test_attention_is_one_chain() -> None:
    chain = only_chain(ATTENTION)
    assert chain.members == ("X", "Z", "O")
    assert chain.leader == "O"
    assert chain.inside == {"X", "E", "Z", "R", "O"}
    assert chain.applied(ATTENTION.nodes()) == ATTENTION.nodes()
    first = "before(X[b, m]) == -inf and before(X[b, m]) != X[b, m]"
    factor = "where(before(X[b, m]) == X[b, m], 1.0, exp(before(X[b, m]) - X[b, m]))"
    assert {name: text_of(entry.rescale) for name, entry in chain.shared.items() if name != "O"} == {
        "X": "X[b, m]",
        "Z": f"where({first}, 0.0, Z[b, m] * {factor})",
    }
    assert f"O[b, m, d] * {factor} * where(before(Z[b, m])" in text_of(chain.shared["O"].rescale)


def test_axes_are_aligned_through_transposed_reads() -> None:
    heads = Case(
        [
            "S[i, j, k, l] = A[i, j, k, l] * 0.125 + M[i, 0, 0, l]",
            "X[i, l, j, k] = max(r, S[i, j, k, r])",
            "E[i, j, k, l] = exp(S[i, j, k, l] - X[i, 0, j, k])",
            "Z[i, l, j, k] = sum(r, E[i, j, k, r])",
            "R[i, j, k, l] = E[i, j, k, l] / Z[i, 0, j, k]",
            "O[b, h, m, n] = sum(t, R[b, h, m, t] * V[0, t, h*8 + n])",
        ],
        {"i": 1, "j": 3, "k": 7, "l": 7, "r": 7, "b": 1, "h": 3, "m": 7, "n": 8, "t": 7},
        {"A": (1, 3, 7, 7), "M": (1, 1, 1, 7), "V": (1, 7, 24)},
    )
    heads = replace(
        heads,
        texts=[text.replace("[i, l, j, k] =", "[i, u, j, k] =") for text in heads.texts],
        extents={**heads.extents, "u": 1},
    )
    chain = only_chain(heads)
    assert [dict(chain.shared[name].iterators) for name in chain.members] == [{"r": "t"}, {"r": "t"}, {"t": "t"}]
    check(replace(planned(heads, {"l2": {"t": 3}}), tiles={"l2": {"O": {"h": 1, "m": 4}}}))


def test_bodies_may_be_split_over_nodes_or_not() -> None:
    apart = rules(case(ROWS))
    merged_body = "O[s, d] = sum(r, exp(A[s, r] - X[s]) / Z[s] * V[r, d])"
    assert rules(case([ROWS[0], "Z[s] = sum(r, exp(A[s, r] - X[s]))", merged_body])) == apart


def test_what_is_read_behind_the_loop_too_is_computed_twice() -> None:
    softmax = Case(SOFTMAX, {"m": 10, "n": 37}, {"S": (10, 37)})
    chain = only_chain(softmax)
    texts = [tensor_text(node) for node in chain.applied(softmax.nodes())]
    assert texts == [
        "X[m] = max(n, S[m, n])",
        "E_running[m, n] = exp(S[m, n] - X[m])",
        "Z[m] = sum(n, E_running[m, n])",
        "E[m, n] = exp(S[m, n] - X[m])",
        "R[m, n] = E[m, n] / Z[m]",
    ]
    assert dict(chain.tensors) == {"E_running": Tensor((Const(10), Const(37)), "f32")}
    check(replace(planned(softmax, {"l2": {"n": 7}}), tiles={"l2": {"R": {"m": 4}}}))


@pytest.mark.parametrize("scale", ["", " * 0.5", " / 4.0"])
def test_exponents_may_be_scaled(scale: str) -> None:
    found = case(["X[s] = max(r, A[s, r])", f"Z[s] = sum(r, exp((A[s, r] - X[s]){scale}))"])
    check(planned(found, {"l2": {"r": 5}}))
    assert rules(found)["Z"].endswith(
        "exp(before(X[s]) - X[s])))" if not scale else "* 0.5)))" if "5" in scale else "* 0.25)))"
    )


def test_least_values_and_guards() -> None:
    found = case(
        [
            "P[s, r] = where(r <= s*3, A[s, r], inf)",
            "X[s] = min(r, P[s, r])",
            "Z[s] = sum(r, where(r < 20, exp(X[s] - P[s, r]), 0.0))",
        ]
    )
    assert "before(X[s]) == inf" in rules(found)["Z"]
    check(planned(found, {"l2": {"r": 7}}))


def test_means_are_estimated_while_they_grow() -> None:
    texts = normalized(24)
    chain = only_chain(case(texts))
    assert chain.members == ("T_count", "T", "Q", "V")
    new = [tensor_text(node) for node in chain.applied(case(texts).nodes())]
    assert new[:4] == [
        "T_count[()] = sum(r, 1.0)",
        "T[s] = sum(r, A[s, r])",
        "T_estimate[s] = T[s] * (24.0 / T_count[()])",
        "U[s] = T_estimate[s] / 24.0",
    ]
    check(planned(case(texts), {"l2": {"r": 7}}))


@pytest.mark.parametrize(
    "body",
    [
        "(A[s, r] - U[s]) * (A[s, r] - U[s]) / 24.0",
        "0.5 * pow(A[s, r] - U[s], 2.0)",
        "pow(U[s] - A[s, r], 2.0) * 3.0",
    ],
)
@pytest.mark.parametrize("mean", ["sum(r, A[s, r] / 24.0)", "sum(r, A[s, r]) / 24.0"])
def test_squares_of_distances(mean: str, body: str) -> None:
    texts = ["T[s] = sum(r, A[s, r])", "U[s] = T[s] / 24.0"] if mean.endswith("24.0") else [f"U[s] = {mean}"]
    check(planned(case([*texts, f"V[s] = sum(r, {body})", "N[s, q] = A[s, q] - U[s] + V[s]"]), {"l2": {"r": 5}}))


def test_two_axes_and_two_chains() -> None:
    image = Case(
        [
            "T[c] = sum(h, w, I[c, h, w])",
            "U[c] = T[c] / 30.0",
            "V[c] = sum(h, w, (I[c, h, w] - U[c]) * (I[c, h, w] - U[c]))",
            "P[c, h, w] = I[c, h, w] * V[c]",
            "X[c, h] = max(w, P[c, h, w])",
            "Z[c, h] = sum(w, exp(P[c, h, w] - X[c, h]))",
        ],
        {"c": 4, "h": 5, "w": 6},
        {"I": (4, 5, 6)},
        {"l2": {"Z": {"c": 2}}},
    )
    chains = find_shared_reductions(image.nodes(), image.plan().tensors, ["Z"])
    assert [chain.members for chain in chains] == [("T_count", "T", "V"), ("X", "Z")]
    nodes = image.nodes()
    for chain in chains:
        nodes = chain.applied(nodes)
    both = replace(
        image,
        texts=[tensor_text(node) for node in nodes],
        steps={"l2": {"V": {"h": 2, "w": 4}, "Z": {"w": 4}}},
        more={"shared": {**chains[0].shared, **chains[1].shared}},
    )
    check(both)


NONE = {
    "a sum that is no mean": ["T[s] = sum(r, A[s, r])", "V[s] = sum(r, (A[s, r] - T[s]) * (A[s, r] - T[s]))"],
    "an exponent that may grow": ["X[s] = max(r, A[s, r])", "Z[s] = sum(r, exp(X[s] - A[s, r]))"],
    "the largest of something else": ["X[s] = max(r, A[s, r])", "Z[s] = sum(r, exp(B[s, r] - X[s]))"],
    "a divisor that may vanish": ["T[s] = sum(r, A[s, r])", "Z[s] = sum(r, A[s, r] / T[s])"],
    "a divisor of something else": ["T[s] = sum(r, A[s, r] * A[s, r])", "Z[s] = sum(r, B[s, r] / T[s])"],
    "a factor that grows": ["X[s] = max(r, A[s, r])", "Z[s] = sum(r, A[s, r] * X[s])"],
    "a function without a rule": ["T[s] = sum(r, abs(A[s, r]))", "Z[s] = sum(r, tanh(A[s, r] / T[s]))"],
    "another row": ["X[s] = max(r, A[s, r])", "Z[t] = sum(s, r, exp(A[s, r] - X[s]))"],
    "a reduction between": [
        "X[s] = max(r, A[s, r])",
        "G[s, q] = sum(r, V[q, r % 2] * X[s])",
        "Z[s] = sum(r, G[s, r])",
    ],
    "products": ["X[s] = max(r, A[s, r])", "Z[s] = prod(r, exp(A[s, r] - X[s]))"],
    "independent sums": ["X[s] = sum(r, A[s, r])", "Z[s] = sum(r, A[s, r] * A[s, r])"],
}


@pytest.mark.parametrize("name", NONE)
def test_nothing_is_shared_without_a_rule(name: str) -> None:
    nodes = case(NONE[name]).nodes()
    tensors = {n.tensor: Tensor(n.shape, "f32") for n in nodes} | {t: Tensor((), "f32") for t in "ABV"}
    assert find_shared_reductions(nodes, tensors, [nodes[-1].tensor]) == ()


def test_divisors_of_which_the_body_is_a_part() -> None:
    found = case(["T[s] = sum(r, abs(A[s, r]))", "O[s, d] = sum(r, A[s, r] / T[s] * V[r, d])"])
    assert rules(found)["O"].startswith("where(before(T[s]) == 0.0 and before(T[s]) != T[s], 0.0, ")
    check(planned(found, {"l2": {"r": 5}}))


def test_half_precision_is_rescaled_in_f32() -> None:
    found = case(ROWS, ttypes=dict.fromkeys(("A", "V", "X", "E", "Z", "R", "O"), "f16"))
    assert rules(found)["Z"].startswith("where(f32(before(X[s])) == -inf and")
    shared = planned(found, {"l2": {"r": 5}})
    arrays = {name: array.astype(np.float16) for name, array in shared.arrays().items()}
    got = execute(shared.program(), arrays).outputs["O"]
    np.testing.assert_allclose(got, reference(found, arrays)["O"], atol=4e-3)


@pytest.mark.parametrize("size", [1, 6, 7, 8, 23])
def test_rows_of_any_length(size: int) -> None:
    length = Var("N")
    rows = Case(ROWS, {"s": 5, "r": length, "d": 2}, {"A": (5, length), "V": (length, 2)}, symbols=("N",))
    check(planned(rows, {"l2": {"r": 7}}), N=size)
    texts = [text.replace("1000.0", "f32(N)") for text in normalized(1000)]
    rows = Case(texts, {"s": 5, "r": length}, {"A": (5, length)}, symbols=("N",))
    assert only_chain(rows).tensors["T_count"].ttype == "f64"
    check(planned(rows, {"l2": {"r": 7}}), N=size)


# how well


def reference(case: Case, arrays: Arrays) -> dict[str, np.ndarray]:
    """Every node over whole tensors in float64."""
    known = {name: array.astype(np.float64) for name, array in arrays.items()}
    for node in replace(case, ttypes={}).nodes():
        with np.errstate(all="ignore"):
            known[node.tensor] = np.asarray(evaluate(node, known))
    return known


def masked(rows: np.ndarray) -> np.ndarray:
    """The first row as it is, one that begins and ends with -inf, one that is -inf throughout."""
    rows = rows.copy()
    rows[1, : rows.shape[1] // 3], rows[1, -rows.shape[1] // 4 :], rows[2] = -np.inf, -np.inf, -np.inf
    return rows


@pytest.mark.feature("W09")
@pytest.mark.parametrize("step", [7777, 33333])
def test_long_rows_with_masks_and_offsets(step: int) -> None:
    long = case([*ROWS, "L[s] = log(Z[s]) + X[s]"], ("O", "L"), r=LONG)
    rng = np.random.default_rng(step)
    rows = (rng.standard_normal((3, LONG)) * 4 + 1e4).astype(np.float32)
    arrays = {"A": masked(rows), "V": rng.standard_normal((LONG, 2)).astype(np.float32)}
    got = execute(replace(planned(long, {"l2": {"r": step}}), tiles={"l2": {"L": {"s": 2}}}).program(), arrays).outputs
    exact = reference(long, arrays)
    np.testing.assert_allclose(got["O"], exact["O"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got["L"], exact["L"], rtol=1e-6)
    assert np.isnan(got["O"][2]).all(), "as in two passes"


@pytest.mark.parametrize("step", [1, 3, 5])
def test_special_values_come_out_as_in_two_passes(step: int) -> None:
    special = np.array([-np.inf, np.inf, np.nan, -3.4028235e38, 3.4028235e38, -1e9, 0.0, 1.0], np.float32)
    rows = np.random.default_rng(step).choice(special, (200, 12), p=[0.4, 0.01, 0.01, 0.3, 0.01, 0.09, 0.09, 0.09])
    short = case(ROWS, ("O", "Z"), s=200, r=12)
    arrays = {"A": rows, "V": np.ones((12, 2), np.float32)}
    shared = planned(short, {"l2": {"r": step}})
    with np.errstate(all="ignore"):
        got, exact = execute(shared.program(), arrays).outputs, shared.reference(arrays)
    assert np.isnan(exact["Z"]).any()
    for name in ("O", "Z"):
        np.testing.assert_allclose(got[name], exact[name], rtol=1e-6)


@pytest.mark.feature("W09")
@pytest.mark.parametrize("step", [7777, 33333])
def test_variance_of_long_rows_far_from_zero(step: int) -> None:
    long = case(normalized(LONG), ("S",), r=LONG)
    arrays = {"A": (np.random.default_rng(step).standard_normal((3, LONG)) + 1e4).astype(np.float32)}
    got = execute(planned(long, {"l2": {"r": step}}).program(), arrays).outputs["S"]
    np.testing.assert_allclose(got, reference(long, arrays)["S"], rtol=1e-6)


# merged


def partial(nodes: Sequence[TensorExpr], arrays: Arrays, first: int, last: int) -> dict[str, np.ndarray]:
    """What a loop over some columns leaves behind."""
    known = {"A": arrays["A"][:, first:last], "V": arrays["V"][first:last]}
    for node in nodes:
        extents = {**node.domain, "r": Const(last - first)}
        part = replace(node, extents=tuple(extents[i] for i in node.iterators))
        with np.errstate(all="ignore"):
            known[node.tensor] = np.asarray(evaluate(part, known))
    return known


@pytest.mark.feature("W09")
@pytest.mark.parametrize(("texts", "last"), [(ROWS, "O"), (normalized(997), "V")], ids=["attention", "variance"])
def test_halves_are_merged_in_any_order(texts: Sequence[str], last: str) -> None:
    whole = case(texts, (last,), r=997)
    chain = only_chain(whole)
    nodes = chain.applied(whole.nodes())
    rng = np.random.default_rng(7)
    rows = (rng.standard_normal((3, 997)) * 2 + 1e4).astype(np.float32)
    arrays = {"A": masked(rows) if last == "O" else rows, "V": rng.standard_normal((997, 2)).astype(np.float32)}
    left, right = ({name: f"{name}_{side}" for name in chain.members} for side in ("left", "right"))
    merge = merge_shared_reductions(chain, nodes, left, right)

    def both(a: Arrays, b: Arrays) -> Arrays:
        known = {left[name]: a[name] for name in chain.members} | {right[name]: b[name] for name in chain.members}
        for node in merge:
            with np.errstate(all="ignore"):
                known[node.tensor] = np.asarray(evaluate(node, known))
        return known

    exact = reference(whole, arrays)[last]
    for seed in range(5):
        choice = random.Random(seed)
        cuts = [0, *sorted(choice.sample(range(1, 997), 6)), 997]
        parts: list[Arrays] = [partial(nodes, arrays, first, end) for first, end in pairwise(cuts)]
        while len(parts) > 1:
            a, b = (parts.pop(choice.randrange(len(parts))) for _ in range(2))
            one, other = both(a, b), both(b, a)
            for name in chain.members:
                np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-4)
            parts.append(one)
        np.testing.assert_allclose(parts[0][last], exact, rtol=2e-5, atol=1e-6)


# attention that stays on the chip


@pytest.mark.feature("W09", "W17")
def test_attention_of_any_length_stays_on_chip() -> None:
    check(attention(40, 150, width=8, rows=32))
    long = attention(65_536, 65_536)
    program = long.program()
    assert overflows(program) == ()
    assert footprint(program)["smem"] == footprint(attention(1024, 1024).program())["smem"]
    held = {s.buffer.tensor: s.buffer.level for s in statements(program.body) if isinstance(s, Allocate)}
    assert not {tensor for tensor, level in held.items() if level == "dram"}
    # 512 blocks read their rows of Q once and all of K and V; only the result is written.
    whole = 65_536 * 64 * 4
    moved = traffic(program)["smem"]
    assert (moved.read, moved.written) == (whole + 512 * 2 * whole, whole)
