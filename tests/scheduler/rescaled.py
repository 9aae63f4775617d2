"""Cases whose reductions share a loop by the rules that are found for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.lower.cases import Case
from tilec.ir.plan import PlanLevel
from tilec.ir.text import tensor_text
from tilec.scheduler.online.shared_reductions import SharedReductions, find_shared_reductions

A100 = (
    PlanLevel("dram", 80_000_000_000, transaction=32),
    PlanLevel("smem", 167_936, 108, scope="block", transaction=128),
    PlanLevel("reg", 1020, 2048, scope="thread", transaction=4),
)

ROWS = [
    "X[s] = max(r, A[s, r])",
    "E[s, r] = exp(A[s, r] - X[s])",
    "Z[s] = sum(r, E[s, r])",
    "R[s, r] = E[s, r] / Z[s]",
    "O[s, d] = sum(r, R[s, r] * V[r, d])",
]
"""Rows of a softmax times a matrix."""


def normalized(n: int) -> list[str]:
    """The variance of rows as the importer writes it, the mean corrected by the mean of what it leaves."""
    distance = "(A[s, r] - U[s] - W[s])"
    return [
        "T[s] = sum(r, A[s, r])",
        f"U[s] = T[s] / {n}.0",
        "Q[s] = sum(r, A[s, r] - U[s])",
        f"W[s] = Q[s] / {n}.0",
        f"V[s] = sum(r, {distance} * {distance})",
        f"S[s] = V[s] / {n}.0",
    ]


def only_chain(case: Case) -> SharedReductions:
    """The one chain of a case."""
    (chain,) = find_shared_reductions(case.nodes(), case.plan().tensors, case.plan().groups[0].outputs)
    return chain


def planned(case: Case, steps: Mapping[str, Mapping[str, int]]) -> Case:
    """The case with its chain in one loop; `steps` of the leader by level, beside those that the case has."""
    chain = only_chain(case)
    nodes = chain.applied(case.nodes())
    return replace(
        case,
        texts=[tensor_text(node) for node in nodes],
        ttypes={**case.ttypes, **{name: tensor.ttype for name, tensor in chain.tensors.items()}},
        steps={level: {**case.steps.get(level, {}), chain.leader: sizes} for level, sizes in steps.items()}
        | {level: sizes for level, sizes in case.steps.items() if level not in steps},
        more={**case.more, "shared": chain.shared},
        outputs=case.plan().groups[0].outputs,
    )


def attention(length: int, keys: int, width: int = 64, rows: int = 128) -> Case:
    """One head of attention with one loop over the keys, planned by hand for a device like the a100."""
    case = Case(
        [
            "S[m, n] = sum(k, Q[m, k] * K[n, k])",
            "P[m, n] = S[m, n] * 0.125",
            "X[m] = max(n, P[m, n])",
            "E[m, n] = exp(P[m, n] - X[m])",
            "Z[m] = sum(n, E[m, n])",
            "R[m, n] = E[m, n] / Z[m]",
            "O[m, d] = sum(n, R[m, n] * V[n, d])",
        ],
        {"m": length, "n": keys, "k": width, "d": width},
        {"Q": (length, width), "K": (keys, width), "V": (keys, width)},
        {
            "smem": {"O": {"m": rows}},
            "reg": {
                "P": {"m": 4, "n": 8},
                "X": {"m": 1},
                "E": {"m": 4, "n": 8},
                "Z": {"m": 1},
                "R": {"m": 4, "n": 8},
                "O": {"m": 4, "d": 8},
            },
        },
        {"reg": {"S": {"k": 4}, "X": {"n": 16}, "Z": {"n": 16}, "O": {"n": 4}}},
        {"S->P": "reg"},
        A100,
    )
    with_step = planned(case, {"smem": {"n": 64}})
    return replace(with_step, steps={"smem": {"O": {"n": 64}}, "reg": case.steps["reg"]})
