"""Groups evaluated in NumPy round where the plan says that they do."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.lower.cases import Case
from tilec.ir.expr import Access, Var
from tilec.ir.plan import Shared
from tilec.verify.groups import check_group, evaluated, running_nodes

CASE = Case(
    ["P[s] = X[s] * X[s]", "O[s] = P[s] / 1024.0"],
    {"s": 8},
    {"X": (8,)},
    ttypes=dict.fromkeys("XPO", "f16"),
    more={"held": {"l2": {"P": "f32"}}},
)
X = np.full(8, 400, np.float16)


@pytest.mark.parametrize(
    ("held", "value"), [({"l2": {"P": "f32"}}, 156.25), ({"l2": {"X": "f32"}}, np.inf), ({}, np.inf)]
)
def test_half_precision_is_rounded_as_the_group_holds_it(held: dict[str, dict[str, str]], value: float) -> None:
    plan = replace(CASE, more={"held": held}).plan()
    found = evaluated(plan.groups[0], plan, {"X": X})
    assert found["P"].dtype == (np.float32 if "P" in held.get("l2", {}) else np.float16)
    assert found["O"].dtype == np.float16
    assert np.all(found["O"] == value)


def test_what_a_group_made_of_wide_tensors_passes() -> None:
    plan = CASE.plan()
    tensors = {"X": X, "O": np.full(8, 156.25, np.float16)}
    assert check_group(plan.groups[0], plan, tensors, {}).passed


@pytest.mark.parametrize(("body", "passes"), [("minimum(P[s] - P[0], 1.0)", True), ("(P[s] - P[0]) / 4096.0", False)])
def test_errors_that_a_group_hands_on_are_measured_by_where_they_come_from(body: str, passes: bool) -> None:
    """What is cut off is as far off as it was before; what is divided is not."""
    plan = Case(["P[s] = X[s] * X[s]", f"O[s] = {body}"], {"s": 8}, {"X": (8,)}).plan()
    x = np.linspace(1000, 1001, 8, dtype=np.float32)
    exact = evaluated(plan.groups[0], plan, {"X": x})["O"]
    assert check_group(plan.groups[0], plan, {"X": x, "O": exact}, {}).passed
    off = exact + np.float32(0.1 / (1 if passes else 8))
    assert check_group(plan.groups[0], plan, {"X": x, "O": off}, {}).passed is passes


@pytest.mark.parametrize(("error", "passes"), [(3e-7, True), (1e-3, False)])
def test_what_is_left_of_a_mean_is_measured_by_what_it_was_taken_from(error: float, passes: bool) -> None:
    """Every element of it is the rounding of a sum of elements that are about 100."""
    extents = {"s": 4, "r": 64}
    distance = "C[s, r] = X[s, r] - T[s] / 64.0"
    texts = ["T[s] = sum(r, X[s, r])", distance, "R[s] = sum(r, C[s, r])", "M[s] = R[s] / 64.0"]
    plan = Case(texts, extents, {"X": (4, 64)}).plan()
    x = (100 + np.random.default_rng(0).standard_normal((4, 64))).astype(np.float32)
    left = evaluated(plan.groups[0], plan, {"X": x})["M"]
    assert np.abs(left).max() < 1e-4
    assert check_group(plan.groups[0], plan, {"X": x, "M": left + np.float32(error)}, {}).passed is passes


def test_a_sum_of_what_cancels_is_measured_by_its_elements() -> None:
    plan = Case(["T[s] = sum(r, X[s, r])"], {"s": 2, "r": 64}, {"X": (2, 64)}).plan()
    half = np.random.default_rng(0).standard_normal((2, 32)).astype(np.float32)
    x = np.concatenate([half, -half], axis=1)
    assert check_group(plan.groups[0], plan, {"X": x, "T": np.full(2, 1e-7, np.float32)}, {}).passed
    assert not check_group(plan.groups[0], plan, {"X": x, "T": np.full(2, 1e-2, np.float32)}, {}).passed


def test_what_a_mask_scales_up_hides_no_error() -> None:
    """A mask of ones becomes 0 times a huge number, and the scores that it is added to are checked as before."""
    texts = ["W[s] = where(K[s] > 0.5, 1.0, 0.0)", "U[s] = (1.0 - W[s]) * -3.4e38", "O[s] = X[s] + U[s]"]
    plan = Case(texts, {"s": 8}, {"X": (8,), "K": (8,)}).plan()
    given = {"X": np.linspace(1, 2, 8, dtype=np.float32), "K": np.ones(8, np.float32)}
    exact = evaluated(plan.groups[0], plan, given)["O"]
    assert check_group(plan.groups[0], plan, {**given, "O": exact}, {}).passed
    assert not check_group(plan.groups[0], plan, {**given, "O": exact + np.float32(0.01)}, {}).passed


SOFTMAX = [
    "S[s, n] = sum(k, X[s, k] * Y[n, k])",
    "T[s] = max(n, S[s, n])",
    "E[s, n] = exp(S[s, n] - T[s])",
    "Z[s] = sum(n, E[s, n])",
    "O[s, n] = E[s, n] / Z[s]",
]


@pytest.mark.parametrize(("size", "passes"), [(1.0, False), (300.0, True)])
def test_the_softmax_of_large_scores_hangs_on_their_last_digits(size: float, passes: bool) -> None:
    plan = Case(SOFTMAX, {"s": 2, "n": 4, "k": 4096}, {"X": (2, 4096), "Y": (4, 4096)}).plan()
    generator = np.random.default_rng(0)
    y = np.repeat(generator.standard_normal((1, 4096)), 4, axis=0)
    x = size * generator.standard_normal((2, 4096))
    given = {"X": x.astype(np.float32), "Y": y.astype(np.float32)}
    found = evaluated(plan.groups[0], plan, given)
    assert np.abs(found["S"]).max() > 30 * size
    off = found["O"] * np.float32([1.004, 0.996, 1, 1])
    assert check_group(plan.groups[0], plan, {**given, "O": found["O"]}, {}).passed
    assert check_group(plan.groups[0], plan, {**given, "O": off}, {}).passed is passes
    assert not check_group(plan.groups[0], plan, {**given, "O": found["O"][:, ::-1] * 0}, {}).passed


def test_what_is_exact_strays_nowhere() -> None:
    """A mask of whole numbers, which its cast does not round, becomes 0 times a huge number."""
    texts = ["W[s] = f32(K[s])", "U[s] = (1.0 - W[s]) * -3.4e38", "O[s] = X[s] + U[s]"]
    plan = Case(texts, {"s": 8}, {"X": (8,), "K": (8,)}, ttypes={"K": "i64"}).plan()
    given = {"X": np.linspace(1, 2, 8, dtype=np.float32), "K": np.ones(8, np.int64)}
    exact = evaluated(plan.groups[0], plan, given)["O"]
    assert not check_group(plan.groups[0], plan, {**given, "O": exact + np.float32(0.01)}, {}).passed


def test_a_row_that_hangs_on_rounding_hides_no_error_in_another() -> None:
    """Behind a mask that leaves nothing of a row any softmax of it is right."""
    texts = list(SOFTMAX)
    texts[1:1] = ["M[s, n] = S[s, n] + K[s, n]"]
    texts = [text if text[0] in "SM" else text.replace("S[s, n]", "M[s, n]") for text in texts]
    plan = Case(texts, {"s": 2, "n": 4, "k": 8}, {"X": (2, 8), "Y": (4, 8), "K": (2, 4)}).plan()
    generator = np.random.default_rng(0)
    given = {
        name: generator.standard_normal(shape).astype(np.float32) for name, shape in (("X", (2, 8)), ("Y", (4, 8)))
    }
    given["K"] = np.float32([[-1e10] * 4, [0] * 4])
    found = evaluated(plan.groups[0], plan, given)["O"]
    for row, passes in ((0, True), (1, False)):
        off = found.copy()
        off[row] += np.float32([0.01, -0.01, 0, 0])
        assert check_group(plan.groups[0], plan, {**given, "O": off}, {}).passed is passes


@pytest.mark.parametrize("online", [True, False])
def test_results_that_run_with_partial_ones_are_rounded_where_these_are(online: bool) -> None:
    """Probabilities of halves by the sum so far, which later parts of a row rescale."""
    texts = [
        "E[s, r] = exp(X[s, r])",
        "T[s] = sum(r, E[s, r])",
        "P[s, r] = E[s, r] / T[s]",
        "Y[s] = sum(r, P[s, r] * V[r])",
    ]
    rescale = {"T": Access("T", (Var("s"),)), "Y": Access("Y", (Var("s"),))}
    shared = {name: Shared("Y", {"r": "r"}, each) for name, each in rescale.items()}
    ttypes = {"X": "f32", "V": "f16", "E": "f32", "T": "f32", "P": "f16", "Y": "f16"}
    more = {"shared": shared} if online else {}
    plan = Case(texts, {"s": 512, "r": 64}, {"X": (512, 64), "V": (64,)}, ttypes=ttypes, more=more).plan()
    (group,) = plan.groups
    assert running_nodes(group) == ({"P"} if online else frozenset())
    x = np.random.default_rng(2).standard_normal((512, 64)).astype(np.float32)
    v = np.random.default_rng(3).standard_normal(64).astype(np.float16)
    weights = np.exp(x.astype(np.float64))
    whole, part = weights.sum(1, keepdims=True), weights[:, :16].sum(1, keepdims=True)
    first = (weights[:, :16] / part).astype(np.float16) * (part / whole)
    rest = (weights[:, 16:] / whole).astype(np.float16)
    y = (first @ v[:16].astype(np.float64) + rest.astype(np.float64) @ v[16:].astype(np.float64)).astype(np.float16)
    assert check_group(group, plan, {"X": x, "V": v, "Y": y}, {}).passed is online


@pytest.mark.parametrize(("error", "passes"), [(6e-8, True), (3e-6, False)])
def test_sums_whose_terms_cancel_are_as_far_off_as_their_partial_sums(error: float, passes: bool) -> None:
    """No sum tells by its own size how large the partial sums of its terms were, in whatever order."""
    plan = Case(["R[s] = sum(r, X[s, r])", "M[s] = R[s] / 4096.0"], {"s": 4, "r": 4096}, {"X": (4, 4096)}).plan()
    generator = np.random.default_rng(1)
    half = generator.uniform(0.9, 1.1, (4, 2048)).astype(np.float32)
    x = generator.permuted(np.concatenate([half, -half], axis=1), axis=1)
    left = evaluated(plan.groups[0], plan, {"X": x})["M"]
    actual = left + np.float32(error) * np.float32([1, -1, 1, -1])
    assert check_group(plan.groups[0], plan, {"X": x, "M": actual}, {}).passed is passes


@pytest.mark.parametrize(("error", "passes"), [(1.0, True), (8.0, False)])
def test_flips_of_half_precision_are_judged_as_a_whole(error: float, passes: bool) -> None:
    """A value on the other side of a boundary moves a row behind it; which rows it are is chance."""
    texts = ["P[s] = X[s] * 0.3", "D[s] = f32(P[s]) - Y[s]", "O[s, n] = D[s] * G[n]"]
    shapes = {"X": (12800,), "Y": (12800,), "G": (4,)}
    plan = Case(texts, {"s": 12800, "n": 4}, shapes, ttypes=dict.fromkeys("PO", "f16")).plan()
    x = np.random.default_rng(3).uniform(16, 32, 12800).astype(np.float32)
    given = {"X": x, "Y": x * np.float32(0.3) - np.float32(0.1), "G": np.ones(4, np.float32)}
    values = evaluated(plan.groups[0], plan, given)
    p = values["P"].astype(np.float32)
    p[:8] += np.float32(error * 2.0**-8)
    moved = ((p - given["Y"])[:, None] * given["G"]).astype(np.float16)
    assert check_group(plan.groups[0], plan, {**given, "O": moved}, {}).passed is passes


def test_flips_excuse_nothing_that_depends_on_no_half() -> None:
    texts = ["H[s] = Y[s] * 0.3", "B[s] = f32(H[s]) - Y[s]", "A[s] = sum(r, X[s, r])"]
    case = Case(texts, {"s": 400, "r": 64}, {"X": (400, 64), "Y": (400,)}, ttypes={"H": "f16"}, outputs=("B", "A"))
    plan, generator = case.plan(), np.random.default_rng(0)
    given = {name: generator.uniform(1, 2, tensor).astype(np.float32) for name, tensor in case.inputs.items()}
    values = evaluated(plan.groups[0], plan, given)
    for error, passes in ((2e-4, True), (6e-4, False)):
        wrong = values["A"].copy()
        wrong[7] += np.float32(error)
        assert check_group(plan.groups[0], plan, {**given, "A": wrong, "B": values["B"]}, {}).passed is passes


def test_sums_of_bits_are_disturbed() -> None:
    plan = Case(
        ["S[s] = sum(t, X[s, t] * bits_f32(W[t]))"], {"s": 2, "t": 9}, {"X": (2, 9), "W": (9,)}, ttypes={"W": "u32"}
    ).plan()
    given = {"X": np.ones((2, 9), np.float32), "W": np.full(9, 1.1, np.float32).view(np.uint32)}
    exact = evaluated(plan.groups[0], plan, given)["S"]
    moved = evaluated(plan.groups[0], plan, given, np.random.default_rng(0))["S"]
    np.testing.assert_allclose(moved, exact, rtol=1e-4)


def test_sums_of_words_made_of_computed_elements_are_disturbed() -> None:
    case = Case(
        ["S[s] = sum(k, dot_bf16_bf16(word(X[2*k] + X[2*k], where(2*k + 1 < 9, X[2*k + 1], bf16(0))), W[k]))"],
        {"s": 1, "k": 5},
        {"X": (10,), "W": (5,)},
        ttypes={"X": "bf16", "W": "u32", "S": "f32"},
    )
    plan = case.plan()
    x = np.random.default_rng(0).standard_normal(10).astype(ml_dtypes.bfloat16)
    given = {"X": x, "W": x.view(np.uint32)}
    exact = evaluated(plan.groups[0], plan, given)["S"]
    moved = evaluated(plan.groups[0], plan, given, np.random.default_rng(0))["S"]
    np.testing.assert_allclose(moved, exact, rtol=1e-4)


@pytest.mark.parametrize(("error", "passes"), [(1e-4, True), (1e-2, False)])
def test_outputs_beside_quantisers_are_judged_by_their_bounds_alone(error: float, passes: bool) -> None:
    """Every element of the quantiser may be a step off; the other output depends on none of them."""
    texts = ["S[s] = sum(r, Y[s, r])", "Q[s] = round(S[s])", "A[s] = sum(t, X[s, t])"]
    shapes = {"X": (4, 4096), "Y": (4, 64)}
    plan = Case(texts, {"s": 4, "r": 64, "t": 4096}, shapes, outputs=("Q", "A")).plan()
    generator = np.random.default_rng(1)
    half = generator.uniform(0.9, 1.1, (4, 2048)).astype(np.float32)
    x = generator.permuted(np.concatenate([half, -half], axis=1), axis=1)
    given = {"X": x, "Y": generator.uniform(1e6, 2e6, (4, 64)).astype(np.float32)}
    values = evaluated(plan.groups[0], plan, given)
    actual = {**given, "Q": values["Q"], "A": values["A"] + np.float32(error)}
    assert check_group(plan.groups[0], plan, actual, {}).passed is passes
