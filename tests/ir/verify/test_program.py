"""The tile program's verifier: legal programs pass, every kind of illegal one is named, none raises."""

import tracemalloc
from dataclasses import replace

import pytest

from tests.programs import (
    DRAM,
    buffer,
    compute,
    convolution,
    copy_program,
    flash,
    load,
    loop,
    matmul,
    neighbours,
    rewrite,
    split,
    tensor,
    threads,
    whole,
    without,
)
from tilec.ir.expr import Const, Var
from tilec.ir.plan import PlanLevel, Pool
from tilec.ir.program import (
    Allocate,
    Barrier,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Program,
    Statement,
    StoreTiles,
)
from tilec.ir.text import parse_expr
from tilec.ir.verify.program import check_program
from tilec.lower.places import with_places


def change(program: Program, kind: type, name: str, /, **fields: object) -> Program:
    """The statements of a kind about one buffer (or loop variable) with other fields."""

    def visit(s: Statement) -> Statement:
        key = s.buffer if isinstance(s, Fill) else s.variable if isinstance(s, Loop) else getattr(s, "target", None)
        return replace(s, **fields) if isinstance(s, kind) and key == name else s  # type: ignore[arg-type]

    return rewrite(program, visit)


def window(program: Program, name: str, /, **fields: object) -> Program:
    """A buffer with other fields."""

    def visit(s: Statement) -> Statement:
        named = isinstance(s, Allocate) and s.buffer.name == name
        return Allocate(replace(s.buffer, **fields)) if named else s  # type: ignore[arg-type,union-attr]

    return rewrite(program, visit)


def placed(pool: Pool | None = None) -> Program:
    """The product with C_s, B_s and A_s at their places."""
    levels = (DRAM, PlanLevel("shared", 4096, pool=pool, alignment=16))
    return replace(matmul(), levels=levels, body=with_places(matmul().body, levels))


def drop(program: Program, kind: type, name: str) -> Program:
    """Without the statements of a kind that write a buffer."""
    return without(
        program, lambda s: isinstance(s, kind) and name in (getattr(s, "target", None), getattr(s, "buffer", None))
    )


def twice(program: Program, kind: type) -> Program:
    """Every statement of a kind repeated."""

    def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        result: list[Statement] = []
        for s in body:
            result.append(replace(s, body=visit(s.body)) if isinstance(s, Loop) else s)
            if isinstance(s, kind):
                result.append(s)
        return tuple(result)

    return replace(program, body=visit(program.body))


@pytest.mark.feature("W31")
@pytest.mark.parametrize(
    "program",
    [
        matmul(),
        matmul(m=4, step=12),
        matmul(cores=2),
        matmul(m=1, n=1, k=1, tile=1, step=1),
        convolution(),
        convolution(h=1, tile=4),
        convolution(guarded=True),
        flash(),
        flash(m=2, tm=2),
        threads((Barrier("thread"),)),
        neighbours(),
        split(),
    ],
    ids=lambda p: p.name,
)
def test_legal(program: Program) -> None:
    assert check_program(program, {}) == ()


@pytest.mark.parametrize("n", [0, 1, 7, 8, 19])
def test_symbolic_sizes(n: int) -> None:
    assert check_program(copy_program(), {"X": (Var("N"),)}, {"N": n}) == ()
    assert check_program(copy_program(), {}) == ()
    short = change(copy_program(), Loop, "i1", extent=parse_expr("N // 8"))
    assert bool(check_program(short, {}, {"N": n})) == bool(n % 8)


def relayed(*, fill: bool = True, tile: int = 3, relay: bool = True) -> Program:
    """C = A @ B over three levels: the sums wait at `shared` while the reduction advances, rows pass through `reg`."""
    m, n, k = 6, 4, 8
    expr = tensor("C[m, n] = sum(k, A[m, k] * B[k, n])", {"m": m, "n": n, "k": k})
    rows = f"minimum(m2*{tile}, {m - tile}) : minimum(m2*{tile}, {m - tile}) + {tile}"
    chunk = "k1*4 : k1*4 + 4"
    a, b = buffer("A_s", "shared", f"A[0:{m}, {chunk}]"), buffer("B_s", "shared", f"B[{chunk}, 0:{n}]")
    c, r = buffer("C_s", "shared", f"C[0:{m}, 0:{n}]"), buffer("C_r", "reg", f"C[{rows}, 0:{n}]", shape=(tile, n))
    begin = LoadTiles("C_r", "C_s") if relay else Fill("C_r", 0.0)
    tiles = loop(
        "m2",
        -(-m // tile),
        Allocate(r),
        begin,
        compute(expr, "C_r", "_s", True, m=rows, k=chunk),
        StoreTiles("C_s", "C_r"),
    )
    body: tuple[Statement, ...] = (loop("k1", 2, *load(a), *load(b), tiles), StoreTiles("C", "C_s"))
    initial = (Allocate(c), Fill("C_s", 0.0)) if fill else (Allocate(c),)
    levels = (DRAM, PlanLevel("shared", 1024), PlanLevel("reg", 256))
    parameters = (whole("A", (m, k)), whole("B", (k, n)), whole("C", (m, n)))
    return Program("relayed", levels, (), parameters, ("C",), (*initial, *body))


def test_sums_that_wait_at_a_lower_level() -> None:
    assert check_program(relayed(), {}) == ()
    assert any("accumulate" in p for p in check_program(relayed(tile=4), {})), "the shifted tile adds its overlap twice"
    assert any("never written" in p for p in check_program(relayed(fill=False), {}))
    assert any("before it is summed up" in p for p in check_program(relayed(relay=False), {}))


ILLEGAL: dict[str, tuple[Program, str]] = {
    # contents
    "dropped load": (drop(matmul(), LoadTiles, "B_s"), "reads elements of B_s that were never written"),
    "missing fill": (drop(matmul(), Fill, "C_s"), "accumulates into elements of C_s that were never written"),
    "shrunk window": (
        window(matmul(), "B_s", hi=(parse_expr("k1*3 + 2"), Const(8))),
        "reads elements of B_s that were never written",
    ),
    "shifted window": (
        window(
            matmul(),
            "A_s",
            lo=(parse_expr("m1*4"), parse_expr("k1*3")),
            hi=(parse_expr("m1*4 + 4"), parse_expr("k1*3 + 3")),
        ),
        "the window leaves the tensor",
    ),
    "no fill around the halo": (
        change(convolution(), LoadTiles, "X_s", fill=None),
        "the window leaves the tensor and nothing is filled in",
    ),
    "no halo": (
        window(convolution(), "X_s", lo=(parse_expr("h1*4"),)),
        "reads elements of X_s that were never written",
    ),
    "guard too wide": (
        window(convolution(guarded=True), "X_s", hi=(parse_expr("minimum(h1*4 + 4, 9)"),)),
        "reads elements of X_s that were never written",
    ),
    "wider than reserved": (window(matmul(), "C_s", shape=(Const(3), Const(8))), "wider than what is reserved"),
    "tile never computed": (drop(convolution(), ComputeTile, "C_s"), "nothing computes C"),
    "box outside": (
        change(convolution(), ComputeTile, "Y_s", box=(("h", parse_expr("h1*4"), parse_expr("h1*4 + 4")),)),
        "the box leaves the extents",
    ),
    "target too small": (
        window(matmul(), "C_s", hi=(parse_expr("minimum(m1*4, 2) + 3"), Const(8))),
        "leaves the window of C_s",
    ),
    # sums
    "accumulates twice": (twice(matmul(), ComputeTile), "the same elements are accumulated twice"),
    "steps overlap": (
        change(
            matmul(),
            ComputeTile,
            "C_s",
            box=(
                ("m", parse_expr("minimum(m1*4, 2)"), parse_expr("minimum(m1*4, 2) + 4")),
                ("n", Const(0), Const(8)),
                ("k", parse_expr("maximum(k1*3 - 1, 0)"), parse_expr("k1*3 + 3")),
            ),
        ),
        "accumulate the same elements again",
    ),
    "a step is missing": (change(matmul(), Loop, "k1", extent=Const(3)), "C_s is stored before it is summed up"),
    "units add to one element": (
        change(split(), StoreTiles, "R", combine="none"),
        "before it is summed up",
    ),
    "nothing to combine with": (drop(split(), Fill, "R"), "combines with elements of R that were never written"),
    "begins with one": (change(matmul(), Fill, "C_s", value=1.0), "C_s begins with 1.0, which is not neutral in a sum"),
    # stores
    "double store": (twice(convolution(), StoreTiles), "stores elements that"),
    "stored every step": (
        rewrite(
            matmul(),
            lambda s: (
                replace(s, body=(*s.body, StoreTiles("C", "C_s"))) if isinstance(s, Loop) and s.variable == "k1" else s
            ),
        ),
        "later iterations store the same elements again",
    ),
    "an iteration too many": (
        change(matmul(), Loop, "m1", extent=Const(3)),
        "later iterations store the same elements again",
    ),
    "an iteration missing": (
        change(convolution(), Loop, "h1", extent=Const(2)),
        "output Y: not every element is stored",
    ),
    "no store": (drop(flash(), StoreTiles, "Y"), "output Y: not every element is stored"),
    "store of a part": (
        change(matmul(), StoreTiles, "C", lo=(Const(0), Const(0)), hi=(Const(2), Const(8))),
        "stores more than the window",
    ),
    "copy of garbage": (drop(threads(()), LoadTiles, "X_s"), "reads elements of X_r that were never written"),
    "no lockstep": (
        rewrite(neighbours(), lambda s: replace(s, kind="serial", scope="") if isinstance(s, Loop) else s),
        "reads elements of T_s that were never written",
    ),
    # levels
    "overflow": (
        replace(matmul(), levels=(DRAM, PlanLevel("shared", 100))),
        "272 bytes live at once, its capacity is 100",
    ),
    "copies overflow": (window(matmul(), "B_s", copies=2), "368 bytes live at once"),
    "no place": (replace(matmul(), levels=(DRAM, PlanLevel("shared", 4096, alignment=16))), "has no place"),
    "no addresses": (window(matmul(), "A_s", offset=Const(0)), "shared has no addresses"),
    "place of a parameter": (
        replace(matmul(), parameters=(replace(matmul().parameters[0], offset=Const(0)), *matmul().parameters[1:])),
        "parameter A: has an offset",
    ),
    "place of no integer": (window(placed(), "A_s", offset=Var("x")), "x is not bound here"),
    "places overlap": (
        window(placed(), "A_s", offset=Const(128 + 96 - 16)),
        "B_s and A_s live together and overlap in shared",
    ),
    "place not aligned": (window(placed(), "A_s", offset=Const(1032)), "is not aligned to 16 bytes"),
    "places beyond the capacity": (
        window(placed(), "A_s", offset=Const(4080)),
        "level shared: places end at byte 4128, its capacity is 4096",
    ),
    "places beyond a pool": (
        window(placed(pool=Pool("sram", 256, 2)), "A_s", offset=Const(4096)),
        "pool sram: places end at byte 4128, its capacity is 256",
    ),
    "load downwards": (window(threads(()), "X_r", level="shared"), "shared is not below shared"),
    "store upwards": (
        change(matmul(), StoreTiles, "C", target="C_s", source="C"),
        "shared is not below dram",
    ),
    "unknown level": (window(matmul(), "A_s", level="l9"), "unknown level l9"),
    "unknown scope": (change(matmul(), Loop, "m1", kind="spread", scope="warp"), "no level has the scope warp"),
    "unknown barrier": (replace(matmul(), body=(*matmul().body, Barrier("warp"))), "no level has the scope warp"),
    "one unit's window": (
        rewrite(threads(load(buffer("X_b", "shared", "X[i1:i1+1, j1:j1+1]"), "X")), lambda s: s),
        "shared is shared by the units of thread, but j1 is one unit's",
    ),
    "another unit's buffer": (
        rewrite(
            without(threads(()), lambda s: isinstance(s, Allocate) and s.buffer.name == "T_r"),
            lambda s: (
                replace(s, body=(Allocate(buffer("T_r", "reg", "T[i1:i1+1, 0:1]")), *s.body))
                if isinstance(s, Loop) and s.variable == "i1"
                else s
            ),
        ),
        "T_r at reg is allocated outside the loop over thread",
    ),
    "collective read of one unit's buffer": (
        change(threads(()), ComputeTile, "T_r", target="T_s"),
        "shared is shared by the units of thread",
    ),
    "no barrier before a read": (
        without(neighbours(), lambda s: isinstance(s, Barrier)),
        "units of thread may still write T_s, a barrier is missing",
    ),
    "no barrier before the next tile": (
        replace(neighbours(), body=(neighbours().body[0], loop("again", 2, neighbours().body[1]))),
        "units of thread may still read T_s, a barrier is missing",
    ),
    "no barrier after a fill": (without(split(), lambda s: isinstance(s, Barrier)), "may still write R"),
    # names and types
    "bound twice": (
        rewrite(
            matmul(),
            lambda s: (
                Allocate(replace(s.buffer, name="A_s")) if isinstance(s, Allocate) and s.buffer.name == "B_s" else s
            ),
        ),
        "the name A_s is bound twice",
    ),
    "variable twice": (change(matmul(), Loop, "k1", variable="m1"), "the name m1 is bound twice"),
    "not allocated": (
        without(matmul(), lambda s: isinstance(s, Allocate) and s.buffer.name == "A_s"),
        "A_s is not allocated here",
    ),
    "unbound": (window(matmul(), "A_s", lo=(Var("x"), Const(0))), "x is not bound here"),
    "no integer": (change(matmul(), Loop, "k1", extent=Const(2.5)), "no integer expression"),
    "division by zero": (change(matmul(), Loop, "k1", extent=parse_expr("4 // 0")), "no integer expression"),
    "rank": (window(matmul(), "A_s", lo=(Const(0),)), "A has 2 dimensions, the window 1, 2, 2"),
    "other tensor": (change(matmul(), LoadTiles, "A_s", source="B"), "B holds B, A_s A"),
    "operand missing": (change(matmul(), ComputeTile, "C_s", operands=(("A", "A_s"),)), "its operands are not those"),
    "wrong box": (change(matmul(), ComputeTile, "C_s", box=()), "the box has the iterators []"),
    "type of an operand": (window(matmul(), "A_s", ttype="f16"), "f16 meets f32"),
    "type of a target": (window(matmul(), "C_s", ttype="i32"), "is held as i32"),
    "unknown type": (window(matmul(), "A_s", ttype="f31"), "unknown tType f31"),
    "fill of another type": (change(matmul(), Fill, "C_s", value=True), "True is no f32"),
    "layout": (window(matmul(), "A_s", layout=(0, 0)), "layout [0, 0] is no order of 2 dimensions"),
    "input written": (
        replace(matmul(), body=(Fill("A", 0.0), *matmul().body)),
        "A is an input",
    ),
    "output unknown": (replace(matmul(), outputs=("Z",)), "output Z: is no parameter"),
    "no levels": (replace(matmul(), levels=()), "the program has no levels"),
    "accumulates what is no reduction": (
        change(convolution(), ComputeTile, "Y_s", accumulate=True),
        "without a reduction",
    ),
    "reads ahead in place": (
        rewrite(
            flash(),
            lambda s: (
                replace(s, expr=tensor("Z[m] = Z[m] * Z[0]", {"m": 6}), operands=(("Z", "Z_s"),), box=s.box[:1])
                if isinstance(s, ComputeTile) and s.target == "Z_s"
                else s
            ),
        ),
        "reads other elements of Z_s than the one it writes",
    ),
}


def haloed(box: str = "0:5", first: int = -1) -> Program:
    """Y[i] = T[i - 1] + T[i + 1] with T = 2 X computed inside a window of zeros."""
    double = tensor("T[i] = X[i] * 2.0", {"i": 5})
    add = tensor("Y[i] = T[i - 1] + T[i + 1]", {"i": 5})
    t = buffer("T_s", "shared", f"T[{first}:6]")
    body = (
        *load(buffer("X_s", "shared", "X[0:5]")),
        Allocate(t),
        Fill("T_s", 0.0),
        compute(double, "T_s", "_s", i=box),
        Allocate(buffer("Y_s", "shared", "Y[0:5]")),
        compute(add, "Y_s", "_s"),
        StoreTiles("Y", "Y_s"),
    )
    return Program("haloed", (DRAM, PlanLevel("shared", 1024)), (), (whole("X", (5,)), whole("Y", (5,))), ("Y",), body)


def test_a_constant_stands_around_a_tensor_but_not_in_it() -> None:
    assert check_program(haloed(), {}) == ()
    for wrong in (haloed(box="0:4"), haloed(box="1:5"), haloed(first=0)):
        assert any("reads elements of T_s that were never written" in p for p in check_program(wrong, {}))


@pytest.mark.feature("W31")
@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal(case: str) -> None:
    program, message = ILLEGAL[case]
    problems = check_program(program, {})
    assert any(message in problem for problem in problems), problems


def test_shapes_of_parameters_are_compared() -> None:
    assert check_program(matmul(), {"A": (6, 12), "B": (12, 8), "C": (6, 8)}) == ()
    (problem,) = check_program(matmul(), {"A": (6, 11)})
    assert problem == "parameter A: its shape is not that of A"


def test_problems_name_the_statement() -> None:
    problems = check_program(drop(matmul(), LoadTiles, "B_s"), {})
    assert problems[0].startswith("compute  C_s[m, n] += sum(k, A_s[m, k] * B_s[k, n])")


def test_large_trip_counts_are_followed() -> None:
    program = matmul(m=4096, n=64, k=1024, tile=4, step=1)
    big = replace(program, levels=(DRAM, PlanLevel("shared", 1 << 20)))
    assert check_program(big, {}) == ()
    assert check_program(change(big, Loop, "k1", extent=Const(1023)), {})


def test_a_number_of_more_positions_than_can_be_followed_is_none_of_memory() -> None:
    """Windows whose ends depend on several long loops at once, as those of flattened tensors do, would be arrays of as
    many elements as all loops together have iterations."""
    program = matmul(m=1 << 17, n=4, k=1 << 12, tile=1, step=1)
    first, last = parse_expr("m1 * 2048 + k1"), parse_expr("m1 * 2048 + k1 + 1")
    tracemalloc.start()
    check_program(window(program, "A_s", lo=(first, first), hi=(last, last)), {})
    assert tracemalloc.get_traced_memory()[1] < 1 << 30
    tracemalloc.stop()
