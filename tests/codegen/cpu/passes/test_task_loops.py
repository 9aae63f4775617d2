from tests.programs import buffer, compute, loop, tensor, whole
from tilec.codegen.cpu.passes.task_loops import task_loops
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Barrier, LoadTiles, Program, Statement, StoreTiles

LEVELS = (PlanLevel("dram", None), PlanLevel("l2", None, 2, "implicit", "core"))


def nest(target: str, source: str, *variables: str) -> Statement:
    """target[i, j] = source[i, j] over spread loops of 2."""
    expr = tensor(f"{target}[i, j] = {source}[i, j]", {"i": 2, "j": 2})
    box = {"i": "p:p + 1"} | ({"j": "q:q + 1"} if "q" in variables else {})
    inside = ", ".join(box.get(i, "0:2") for i in "ij")
    body: tuple[Statement, ...] = (
        *(Allocate(buffer(f"{source}_l", "l2", f"{source}[{inside}]")), LoadTiles(f"{source}_l", source)),
        *(Allocate(buffer(f"{target}_l", "l2", f"{target}[{inside}]")), compute(expr, f"{target}_l", "_l", **box)),
        StoreTiles(target, f"{target}_l"),
    )
    for name in reversed(variables):
        body = (loop(name, 2, *body, scope="core"),)
    return body[0]


def shapes(*body: Statement) -> list[list[str]]:
    parameters = tuple(whole(name, (2, 2)) for name in "ABCD")
    found = task_loops(Program("k", LEVELS, (), parameters, ("C", "D"), body))
    return [[each.variable for each in n.loops] for n in found]


def test_a_perfect_nest():
    assert shapes(nest("C", "A", "p", "q")) == [["p", "q"]]


def test_independent_nests_run_side_by_side():
    assert shapes(nest("C", "A", "p", "q"), Barrier("core"), nest("D", "A", "p")) == [["p", "q"], ["p"]]


def test_a_nest_that_reads_what_another_stores_makes_one_task():
    assert shapes(nest("C", "A", "p"), nest("D", "C", "p")) == [[]]
    assert shapes(nest("C", "A", "p"), nest("C", "B", "p")) == [[]]


def test_anything_else_beside_the_loops_makes_one_task():
    assert shapes(Allocate(buffer("A_l", "l2", "A[0:2, 0:2]")), nest("C", "A", "p")) == [[]]
    assert shapes(loop("p", 2, nest("C", "A", "q"))) == [[]]


def test_tasks_do_not_read_what_other_tasks_store():
    turned = tensor("C[i, j] = C[j, i]", {"i": 2, "j": 2})
    body = (
        *(Allocate(buffer("C_l", "l2", "C[0:2, p:p + 1]")), LoadTiles("C_l", "C")),
        *(Allocate(buffer("N_l", "l2", "C[p:p + 1, 0:2]")), compute(turned, "N_l", "_l", i="p:p + 1")),
        StoreTiles("C", "N_l"),
    )
    assert shapes(loop("p", 2, *body, scope="core")) == [[]]


def test_a_partial_result_may_go_through_its_own_window():
    sums = tensor("C[i, j] = sum(k, A[i, k])", {"i": 2, "j": 2, "k": 2})
    body = (
        *(Allocate(buffer("A_l", "l2", "A[p:p + 1, 0:2]")), LoadTiles("A_l", "A")),
        *(Allocate(buffer("C_l", "l2", "C[p:p + 1, 0:2]")), LoadTiles("C_l", "C")),
        *(compute(sums, "C_l", "_l", True, i="p:p + 1"), StoreTiles("C", "C_l")),
    )
    assert shapes(loop("p", 2, *body, scope="core")) == [["p"]]
