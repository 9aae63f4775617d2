"""Stitched groups: several reductions and contractions connected at a core's level, intermediates in scratch."""

from __future__ import annotations

from tests.lower.cases import Case

GUARD = "where(0 <= h + r - 1 and h + r - 1 < {n} and 0 <= w + s - 1 and w + s - 1 < {n}, X[{x}], {fill})"


def depthwise_pointwise() -> Case:
    guarded = GUARD.format(n=10, x="h + r - 1, w + s - 1, c", fill="0.0")
    return Case(
        [
            f"H[h, w, c] = sum(r, s, {guarded} * D[r, s, c])",
            "G[h, w, c] = maximum(H[h, w, c], 0.0)",
            "Y[h, w, n] = sum(c, G[h, w, c] * W[c, n])",
        ],
        {"h": 10, "w": 10, "c": 24, "r": 3, "s": 3, "n": 20},
        {"X": (10, 10, 24), "D": (3, 3, 24), "W": (24, 20)},
        {"l2": {"Y": {"h": 4}}, "reg": {"G": {"h": 1, "w": 5, "c": 16}, "Y": {"h": 1, "w": 4, "n": 16}}},
        connect={"H->G": "reg"},
    )


def layer_norm_matmul() -> Case:
    return Case(
        [
            "U[s] = sum(c, X[s, c] / 40.0)",
            "V[s] = sum(c, (X[s, c] - U[s]) * (X[s, c] - U[s]) / 40.0)",
            "Q[s, c] = (X[s, c] - U[s]) / sqrt(V[s] + 0.001)",
            "Y[s, n] = sum(c, Q[s, c] * W[c, n])",
        ],
        {"s": 13, "c": 40, "n": 33},
        {"X": (13, 40), "W": (40, 33)},
        {"l2": {"Y": {"s": 6}}, "reg": {"U": {"s": 4}, "V": {"s": 4}, "Q": {"s": 2, "c": 16}, "Y": {"s": 3, "n": 16}}},
    )


def attention(layout: bool) -> Case:
    """K is staged with its rows innermost, so that scores are vectors along them."""
    return Case(
        [
            "S[b, m, n] = sum(k, Q[b, m, k] * K[b, n, k])",
            "X[b, m] = max(n, S[b, m, n])",
            "E[b, m, n] = exp(S[b, m, n] - X[b, m])",
            "Z[b, m] = sum(n, E[b, m, n])",
            "O[b, m, d] = sum(n, E[b, m, n] * V[b, n, d])",
            "R[b, m, d] = O[b, m, d] / Z[b, m]",
        ],
        {"b": 2, "m": 11, "k": 24, "n": 37, "d": 20},
        {"Q": (2, 11, 24), "K": (2, 37, 24), "V": (2, 37, 20)},
        {
            "l2": {"R": {"b": 1, "m": 6}},
            "reg": {"S": {"m": 3, "n": 16}, "X": {"m": 4}, "E": {"m": 1}, "Z": {"m": 4}, "R": {"m": 3, "d": 16}},
        },
        connect={"O->R": "reg"},
        more={"layouts": {"l2": {"K": (0, 2, 1)}} if layout else {}},
    )


def sliced_products() -> Case:
    """Three products of slices of one operand, by loops that differ in names and constant offsets alone."""
    slices = [f"A{n}[m, j] = sum(k, H[m, k + {8 * n}] * W[k + {8 * n}, j])" for n in range(3)]
    return Case(
        ["H[m, c] = maximum(X[m, c], 0.5)", *slices, "Y[m, j] = A0[m, j] + A1[m, j] * 2.0 - A2[m, j]"],
        {"m": 19, "j": 21, "k": 8, "c": 24},
        {"X": (19, 24), "W": (24, 21)},
        {"l2": {"Y": {"m": 10}}, "reg": {f"A{n}": {"m": 4, "j": 16} for n in range(3)}},
    )


def relayed_gelu() -> Case:
    """Reduce steps at l2 with epilogues in registers."""
    return Case(
        [
            "C[m, n] = sum(k, A[m, k] * B[k, n])",
            "D[m, n] = C[m, n] + bias[n]",
            "Y[m, n] = 0.5 * D[m, n] * (1.0 + erf(D[m, n] * 0.7071067811865476)) + R[m, n]",
        ],
        {"m": 19, "n": 50, "k": 36},
        {"A": (19, 36), "B": (36, 50), "bias": (50,), "R": (19, 50)},
        {"l2": {"Y": {"m": 10}}, "reg": {"Y": {"m": 4, "n": 32}}},
        {"l2": {"C": {"k": 12}}},
        connect={"C->D": "reg", "D->Y": "reg"},
    )
