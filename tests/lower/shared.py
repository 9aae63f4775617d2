"""Attention and a variance whose reductions share a loop, written by hand in every way a plan can connect them."""

from __future__ import annotations

from dataclasses import replace

from tests.lower.cases import ATTENTION, GPU, HOST, Case
from tilec.ir.plan import Shared
from tilec.ir.text import parse_expr


def shared(loop: str, rescale: str, **iterators: str) -> Shared:
    return Shared(loop, iterators, parse_expr(rescale))


SAME = "where(before(X[b, m]) == X[b, m], 1.0, exp(before(X[b, m]) - X[b, m]))"
FIRST = "before(X[b, m]) == -inf and before(X[b, m]) != X[b, m]"
SOFTMAX = {
    "X": shared("O", "X[b, m]", n="n"),
    "Z": shared("O", f"where({FIRST}, 0.0, Z[b, m] * {SAME})", n="n"),
    "O": shared("O", f"where({FIRST}, 0.0, O[b, m, d] * {SAME} * (before(Z[b, m]) / Z[b, m]))", n="n"),
}
CORE = {"O": {"b": 1, "m": 8}}
REGISTERS = {"S": {"k": 4}, "O": {"n": 8}, "X": {"n": 16}, "Z": {"n": 16}}
EDGES = ("S->X", "S->E", "X->E", "E->Z", "E->R", "Z->R", "R->O")

FLASH = replace(ATTENTION, steps={"l2": {"O": {"n": 20}}, "reg": REGISTERS}, more={"shared": SOFTMAX})
IN_REGISTERS = replace(
    FLASH,
    connect=dict.fromkeys(EDGES, "reg"),
    tiles={"l2": CORE, "reg": {"O": {"m": 4}}},
    steps={"reg": {"O": {"n": 20}}},
)
ENDS = replace(
    FLASH,
    connect=dict.fromkeys(("S->X", "E->Z", "R->O"), "reg"),
    tiles={"l2": CORE, "reg": {"X": {"m": 4}, "Z": {"m": 3}, "O": {"m": 4, "d": 8}}},
    steps={"l2": {"O": {"n": 20}}, "reg": {"O": {"n": 8}}},
)
CHIP = replace(
    FLASH,
    levels=HOST,
    connect=dict.fromkeys(EDGES, "dram"),
    tiles={
        "dram": {"O": {"b": 1}},
        "l2": {"O": {"m": 4, "d": 8}, "S": {"m": 4}, "E": {"m": 4}, "Z": {"m": 3}, "X": {"m": 4}, "R": {"m": 4}},
        "reg": {"O": {"m": 2}, "Z": {"m": 2}},
    },
    steps={"dram": {"O": {"n": 32}}, "reg": {"S": {"k": 4}}},
)

PROJECTED = replace(
    FLASH,
    texts=[*FLASH.texts, "Y[b, m, f] = sum(d, O[b, m, d] * W[d, f])"],
    extents={**FLASH.extents, "f": 3},
    inputs={**FLASH.inputs, "W": (16, 3)},
    tiles={"l2": {"Y": {"m": 8}}, "reg": {"O": {"m": 4}, "Y": {"m": 3}}},
    steps={"l2": {"O": {"n": 20}, "Y": {"d": 6}}, "reg": {"Y": {"d": 4}}},
)
"""A contraction whose steps the attention in front of it could follow."""

VARIANCE = Case(
    [
        "K[()] = sum(c, 1.0)",
        "T[s] = sum(c, A[s, c])",
        "U[s] = T[s] * (37.0 / K[()]) / 37.0",
        "V[s] = sum(c, (A[s, c] - U[s]) * (A[s, c] - U[s]))",
        "N[s, e] = A[s, e] * T[s] + V[s]",
    ],
    {"s": 10, "c": 37, "e": 37},
    {"A": (10, 37)},
    {"l2": {"N": {"s": 4}}, "reg": {"V": {"s": 2}, "T": {"s": 3}}},
    {"l2": {"V": {"c": 10}}},
    more={
        "shared": {
            "K": shared("V", "K[()]", c="c"),
            "T": shared("V", "T[s]", c="c"),
            "V": shared(
                "V",
                "where(before(K[()]) == 0.0, V[s], V[s] + before(K[()])"
                " * (before(T[s]) / before(K[()]) - T[s] / K[()]) * (before(T[s]) / before(K[()]) - T[s] / K[()]))",
                c="c",
            ),
        }
    },
    outputs=("N", "T"),
)


def on_gpu(case: Case) -> Case:
    """The same on explicit levels with spread registers."""
    tiles, steps = (
        {"shared": t["l2"], "reg": t.get("reg", {})} for t in ({"l2": {}, **case.tiles}, {"l2": {}, **case.steps})
    )
    connect = {edge: "shared" if level == "l2" else level for edge, level in case.connect.items()}
    return replace(case, levels=GPU, tiles=tiles, steps=steps, connect=connect)


SHARED: dict[str, Case] = {
    "every node on its own": FLASH,
    "everything in registers": IN_REGISTERS,
    "loops at both levels": replace(IN_REGISTERS, steps={"l2": {"O": {"n": 24}}, "reg": {"O": {"n": 5}}}),
    "members at the ends of parts": ENDS,
    "three levels of tiles": CHIP,
    "steps below and at the core": replace(
        CHIP,
        connect=dict.fromkeys(EDGES, "l2"),
        tiles={"dram": {"O": {"b": 1}}, **FLASH.tiles},
        steps={"dram": {"O": {"n": 32}}, "l2": {"O": {"n": 20}}},
    ),
    "a step as long as the axis": replace(FLASH, steps={"l2": {"O": {"n": 48}}}),
    "results that leave": replace(FLASH, outputs=("O", "X", "Z")),
    "levels without loads": replace(FLASH, more={"shared": SOFTMAX, "loads": {"X": (), "Z": (), "O": ("reg",)}}),
    "mean and variance": VARIANCE,
    "in the steps of another reduction": PROJECTED,
    "not in the steps below of another reduction": replace(
        PROJECTED,
        connect=dict.fromkeys((*EDGES, "O->Y"), "reg"),
        tiles={"l2": {"Y": {"m": 8}}, "reg": {"Y": {"m": 3}}},
        steps={"l2": {"Y": {"d": 6}}, "reg": {"O": {"n": 20}}},
        outputs=("Y", "X"),
    ),
    "steps of a producer below the loop": replace(
        CHIP,
        connect={**dict.fromkeys(EDGES, "l2"), "S->X": "reg"},
        tiles={"dram": {"O": {"b": 1}}, "l2": {"O": {"m": 8}}, "reg": {"X": {"m": 4}, "O": {"m": 4}}},
        steps={"dram": {"S": {"k": 8}}, "l2": {"O": {"n": 20}}},
    ),
    **{
        f"{name} on threads": on_gpu(case)
        for name, case in (
            ("alone", FLASH),
            ("registers", IN_REGISTERS),
            ("ends", ENDS),
            ("variance", VARIANCE),
            ("projected", PROJECTED),
        )
    },
}
