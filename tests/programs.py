"""Tile programs written by hand, for the tests of their readers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Expr, TensorExpr, Var, as_expr, operands
from tilec.ir.plan import PlanLevel
from tilec.ir.program import (
    Allocate,
    Barrier,
    Buffer,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Program,
    Statement,
    StoreTiles,
    Wait,
)
from tilec.ir.text import parse_expr, parse_tensor, text_of


def tensor(text: str, sizes: Mapping[str, int]) -> TensorExpr:
    return parse_tensor(text, sizes)


def intervals(text: str) -> list[tuple[Expr, Expr]]:
    """`0:4, m*8:m*8 + 8` as pairs of expressions."""
    index = ast.parse(f"x[{text}]", mode="eval").body.slice if text.strip() else ast.Tuple([])  # type: ignore[attr-defined]
    slices = index.elts if isinstance(index, ast.Tuple) else [index]
    return [(parse_expr(ast.unparse(s.lower)), parse_expr(ast.unparse(s.upper))) for s in slices]  # type: ignore[attr-defined]


def buffer(
    name: str, level: str, window: str, ttype: str = "f32", shape: Sequence[int] = (), **options: object
) -> Buffer:
    """`buffer("A_s", "shared", "A[m1*8 : m1*8 + 8, 0 : 16]")`; `shape` where a width is no number."""
    tensor_name, inside = window.removesuffix("]").split("[", 1)
    ends = intervals(inside)
    widths = tuple(as_expr(n) for n in shape) or tuple(simplify(Binary("-", hi, lo)) for lo, hi in ends)
    lo, hi = tuple(a for a, _ in ends), tuple(b for _, b in ends)
    return Buffer(name, tensor_name, level, lo, hi, widths, ttype, **options)  # type: ignore[arg-type]


def whole(name: str, shape: tuple[int, ...], level: str = "dram", ttype: str = "f32") -> Buffer:
    """A parameter: the whole tensor at the lowest level."""
    return buffer(name, level, f"{name}[{', '.join(f'0:{n}' for n in shape)}]", ttype)


def compute(expr: TensorExpr, target: str, at: str, accumulate: bool = False, /, **box: str) -> ComputeTile:
    """`box` like m="m1*8:m1*8 + 8" (absent: the whole extent); operands are the buffers named tensor + `at`."""
    pairs = [(i, *intervals(box.get(i, f"0:{text_of(n)}"))[0]) for i, n in expr.domain.items()]
    return ComputeTile(expr, tuple(pairs), target, tuple((t, t + at) for t in operands(expr)), accumulate)


def loop(variable: str, extent: int | str, *body: Statement, scope: str = "") -> Loop:
    return Loop(variable, parse_expr(str(extent)), tuple(body), "spread" if scope else "serial", scope)


def load(b: Buffer, source: str | None = None, fill: float | None = None, stages: int = 1) -> tuple[Statement, ...]:
    return Allocate(b), LoadTiles(b.name, source or b.tensor, fill, stages)


DRAM = PlanLevel("dram", None)
SHARED = PlanLevel("shared", 4096, 4, scope="block")
REG = PlanLevel("reg", 256, 8, scope="thread")


def rewrite(program: Program, change: Callable[[Statement], Statement | None]) -> Program:
    """Every statement changed, or dropped where `change` gives None."""

    def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        kept = [change(s) for s in body]
        return tuple(replace(s, body=visit(s.body)) if isinstance(s, Loop) else s for s in kept if s is not None)

    return replace(program, body=visit(program.body))


def without(program: Program, drop: Callable[[Statement], bool]) -> Program:
    return rewrite(program, lambda s: None if drop(s) else s)


def matmul(m: int = 6, n: int = 8, k: int = 12, tile: int = 4, step: int = 3, cores: int = 1) -> Program:
    """C = A @ B: rows tiled with a shifted tail, the reduction in steps; rows spread over cores if there are any."""
    expr = tensor("C[m, n] = sum(k, A[m, k] * B[k, n])", {"m": m, "n": n, "k": k})
    lo = f"minimum(m1*{tile}, {m - tile})"
    rows = f"{lo} : {lo} + {tile}"
    chunk = f"k1*{step} : k1*{step} + {step}"
    a = buffer("A_s", "shared", f"A[{rows}, {chunk}]", shape=(tile, step))
    b = buffer("B_s", "shared", f"B[{chunk}, 0:{n}]")
    c = buffer("C_s", "shared", f"C[{rows}, 0:{n}]", shape=(tile, n))
    inner = loop("k1", k // step, *load(a), *load(b), compute(expr, "C_s", "_s", True, m=rows, k=chunk))
    tiles = (Allocate(c), Fill("C_s", 0.0), inner, StoreTiles("C", "C_s"))
    shared = PlanLevel("shared", 4 * (tile * n + step * (tile + n)), cores, scope="core" if cores > 1 else "")
    return Program(
        "matmul",
        (DRAM, shared),
        (),
        (whole("A", (m, k)), whole("B", (k, n)), whole("C", (m, n))),
        ("C",),
        (loop("m1", -(-m // tile), *tiles, scope=shared.scope),),
    )


def convolution(h: int = 9, tile: int = 4, guarded: bool = False) -> Program:
    """A 3-wide convolution with padding 1, its halo staged with zeros or guarded, then a ReLU; tiles are clipped."""
    guard = f"where(0 <= h + r - 1 < {h}, X[h + r - 1], 0.0)"
    conv = tensor(
        f"C[h] = sum(r, {guard} * W[r])" if guarded else "C[h] = sum(r, X[h + r - 1] * W[r])", {"h": h, "r": 3}
    )
    relu = tensor("Y[h] = maximum(C[h], 0.0)", {"h": h})
    hi = f"minimum(h1*{tile} + {tile}, {h})"
    lo, end = f"h1*{tile} - 1", f"{hi} + 1"
    inside = f"maximum({lo}, 0) : minimum({end}, {h})"
    x = buffer("X_s", "shared", f"X[{inside if guarded else f'{lo} : {end}'}]", shape=(tile + 2,))
    w = buffer("W_s", "shared", "W[0:3]")
    c = buffer("C_s", "shared", f"C[h1*{tile} : {hi}]", shape=(tile,))
    y = buffer("Y_s", "shared", f"Y[h1*{tile} : {hi}]", shape=(tile,))
    body = (
        *load(x, fill=None if guarded else 0.0),
        Allocate(c),
        compute(conv, "C_s", "_s", h=f"h1*{tile}:{hi}"),
        Allocate(y),
        compute(relu, "Y_s", "_s", h=f"h1*{tile}:{hi}"),
        StoreTiles("Y", "Y_s"),
    )
    parameters = (whole("X", (h,)), whole("W", (3,)), whole("Y", (h,)))
    levels = (DRAM, PlanLevel("shared", 1024))
    return Program("convolution", levels, (), parameters, ("Y",), (*load(w), loop("h1", -(-h // tile), *body)))


def flash(m: int = 6, k: int = 5, n: int = 12, d: int = 3, tm: int = 2, tn: int = 4) -> Program:
    """Attention with the softmax rescaled block by block: statements that read what they write."""
    sizes = {"m": m, "k": k, "n": n, "d": d}
    texts = {
        "S": "S[m, n] = sum(k, Q[m, k] * KT[k, n])",
        "X": "X[m] = max(n, S[m, n])",
        "Mn": "Mn[m] = maximum(Mx[m], X[m])",
        "R": "R[m] = exp(Mx[m] - Mn[m])",
        "E": "E[m, n] = exp(S[m, n] - Mn[m])",
        "Zr": "Z[m] = Z[m] * R[m]",
        "Z": "Z[m] = sum(n, E[m, n])",
        "Or": "O[m, d] = O[m, d] * R[m]",
        "O": "O[m, d] = sum(n, E[m, n] * V[n, d])",
        "Mx": "Mx[m] = Mn[m]",
        "Y": "Y[m, d] = O[m, d] / Z[m]",
    }
    exprs = {name: tensor(text, sizes) for name, text in texts.items()}
    rows, columns = f"m1*{tm} : m1*{tm} + {tm}", f"n1*{tn} : n1*{tn} + {tn}"
    windows = {
        "Q": f"{rows}, 0:{k}",
        "KT": f"0:{k}, {columns}",
        "V": f"{columns}, 0:{d}",
        **dict.fromkeys(("S", "E"), f"{rows}, {columns}"),
        **dict.fromkeys(("O", "Y"), f"{rows}, 0:{d}"),
        **dict.fromkeys(("X", "Mn", "Mx", "R", "Z"), rows),
    }
    buffers = {t: buffer(f"{t}_s", "shared", f"{t}[{w}]") for t, w in windows.items()}

    def step(name: str, accumulate: bool = False) -> ComputeTile:
        expr = exprs[name]
        box = {"m": rows, "n": columns}
        return compute(expr, f"{expr.tensor}_s", "_s", accumulate, **box)

    inner = (
        *load(buffers["KT"]),
        *load(buffers["V"]),
        *(Allocate(buffers[t]) for t in ("S", "X", "Mn", "R", "E")),
        *(step(name) for name in ("S", "X", "Mn", "R", "E", "Zr")),
        step("Z", True),
        step("Or"),
        step("O", True),
        step("Mx"),
    )
    body = (
        *load(buffers["Q"]),
        *(Allocate(buffers[t]) for t in ("Mx", "Z", "O", "Y")),
        Fill("Mx_s", float("-inf")),
        Fill("Z_s", 0.0),
        Fill("O_s", 0.0),
        loop("n1", n // tn, *inner),
        step("Y"),
        StoreTiles("Y", "Y_s"),
    )
    parameters = (whole("Q", (m, k)), whole("KT", (k, n)), whole("V", (n, d)), whole("Y", (m, d)))
    levels = (DRAM, PlanLevel("shared", 4096, 4, scope="block"))
    return Program("flash", levels, (), parameters, ("Y",), (loop("m1", m // tm, *body, scope="block"),))


def threads(collective: tuple[Statement, ...], extent: int = 3) -> Program:
    """Four blocks of `extent` threads: a thread scales its element of a block's row; `collective` stands between."""
    double = tensor("T[i, j] = X[i, j] * 2.0", {"i": 4, "j": extent})
    x = buffer("X_s", "shared", f"X[i1:i1+1, 0:{extent}]")
    t = buffer("T_s", "shared", f"T[i1:i1+1, 0:{extent}]")
    x_reg = buffer("X_r", "reg", "X[i1:i1+1, j1:j1+1]")
    t_reg = buffer("T_r", "reg", "T[i1:i1+1, j1:j1+1]")
    inner = (
        *load(x_reg, "X_s"),
        Allocate(t_reg),
        compute(double, "T_r", "_r", i="i1:i1+1", j="j1:j1+1"),
        *collective,
        StoreTiles("T_s", "T_r"),
    )
    meet = Barrier("thread")
    body = (*load(x), Allocate(t), meet, loop("j1", extent, *inner, scope="thread"), meet, StoreTiles("T", "T_s"))
    parameters = (whole("X", (4, extent)), whole("T", (4, extent)))
    return Program("threads", (DRAM, SHARED, REG), (), parameters, ("T",), (loop("i1", 4, *body, scope="block"),))


def neighbours() -> Program:
    """Four threads: each doubles an element into the shared tile, then reads the one its neighbour stored."""
    shift = tensor("Y[i] = T[(i + 1) % 4]", {"i": 4})
    double = tensor("T[i] = X[i] * 2.0", {"i": 4})
    buffers = {
        "X_r": buffer("X_r", "reg", "X[i1:i1+1]"),
        "T_r": buffer("T_r", "reg", "T[i1:i1+1]"),
        "Y_r": buffer("Y_r", "reg", "Y[i1:i1+1]"),
        "T_s": buffer("T_s", "shared", "T[0:4]"),
    }
    neighbour = ComputeTile(shift, (("i", Var("i1"), parse_expr("i1 + 1")),), "Y_r", (("T", "T_s"),))
    inner = (
        *load(buffers["X_r"], "X"),
        Allocate(buffers["T_r"]),
        compute(double, "T_r", "_r", i="i1:i1+1"),
        StoreTiles("T_s", "T_r"),
        Barrier("thread"),
        Allocate(buffers["Y_r"]),
        neighbour,
        StoreTiles("Y", "Y_r"),
    )
    body = (Allocate(buffers["T_s"]), loop("i1", 4, *inner, scope="thread"))
    levels = (DRAM, replace(SHARED, units=1, scope=""), REG)
    return Program("shift", levels, (), (whole("X", (4,)), whole("Y", (4,))), ("Y",), body)


def split() -> Program:
    """Three units sum a part each and combine the partial sums."""
    expr = tensor("R[()] = sum(k, A[k])", {"k": 6})
    body = (
        *load(buffer("A_s", "shared", "A[k1*2:k1*2+2]")),
        Allocate(buffer("R_s", "shared", "R[]")),
        compute(expr, "R_s", "_s", k="k1*2:k1*2+2"),
        StoreTiles("R", "R_s", combine="sum"),
    )
    parameters = (whole("A", (6,)), whole("R", ()))
    return Program(
        "split",
        (DRAM, SHARED),
        (),
        parameters,
        ("R",),
        (Fill("R", 0.0), Barrier("block"), loop("k1", 3, *body, scope="block")),
    )


def copy_program(ttype: str = "f32", *, copies: int = 1, capacity: int = 64, managed: str = "explicit") -> Program:
    """Y = X through an eight-element tile, two at a time, sizes symbolic."""
    expr = tensor("Y[i] = X[i]", {"i": 1})
    expr = replace(expr, extents=(Var("N"),))
    x = buffer("X_s", "shared", "X[i1*8 : minimum(i1*8 + 8, N)]", ttype, shape=(8,), copies=copies)
    y = buffer("Y_s", "shared", "Y[i1*8 : minimum(i1*8 + 8, N)]", ttype, shape=(8,))
    body = (
        Allocate(x),
        LoadTiles("X_s", "X", stages=copies),
        *((Wait(("X_s",)),) if copies > 1 else ()),
        Allocate(y),
        compute(expr, "Y_s", "_s", i="i1*8 : minimum(i1*8 + 8, N)"),
        StoreTiles("Y", "Y_s"),
    )
    parameters = tuple(buffer(t, "dram", f"{t}[0:N]", ttype) for t in "XY")
    levels = (DRAM, PlanLevel("shared", capacity, managed=managed))  # type: ignore[arg-type]
    return Program("copy", levels, ("N",), parameters, ("Y",), (loop("i1", "(N + 7) // 8", *body),))
