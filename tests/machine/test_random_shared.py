"""Random plans of reductions that share a loop: refused by a code, or accepted by the verifier and right."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.lower.cases import Case as Written
from tests.machine.test_random_plans import LONG, check
from tests.random_graphs import Case
from tests.random_plans import plans
from tests.scheduler.rescaled import ROWS, normalized
from tilec.ir.graph import Graph, Node, Port
from tilec.scheduler.online.shared_reductions import find_shared_reductions

SCORES = ["S[m, n] = sum(k, Q[m, k] * K[n, k])", "X[m] = max(n, S[m, n])", "E[m, n] = exp(S[m, n] - X[m])"]
MODELS = (
    Written(
        [*SCORES, "Z[m] = sum(n, E[m, n])", "R[m, n] = E[m, n] / Z[m]", "O[m, d] = sum(n, R[m, n] * V[n, d])"],
        {"m": 5, "n": 11, "k": 3, "d": 4},
        {"Q": (5, 3), "K": (11, 3), "V": (11, 4)},
    ),
    Written(
        [*SCORES, "Z[m] = sum(n, E[m, n])", "A[m, d] = sum(n, E[m, n] * V[n, d])", "Y[m, d] = A[m, d] / Z[m] + X[m]"],
        {"m": 5, "n": 11, "k": 3, "d": 4},
        {"Q": (5, 3), "K": (11, 3), "V": (11, 4)},
        outputs=("Y", "Z"),
    ),
    Written(ROWS[:4], {"s": 5, "r": 9}, {"A": (5, 9)}, outputs=("E", "R")),
    Written(
        [*normalized(7), "N[s, q] = (A[s, q] - U[s] - W[s]) / sqrt(S[s] + 0.001)"],
        {"s": 6, "r": 7, "q": 7},
        {"A": (6, 7)},
    ),
)


@st.composite
def shared_cases(draw: Callable) -> Case:
    """A model with its chain in one loop, the leader stepped, the other decisions drawn."""
    written = draw(st.sampled_from(MODELS))
    plan = written.plan()
    group = plan.groups[0]
    (chain,) = find_shared_reductions(written.nodes(), plan.tensors, group.outputs)
    nodes = tuple(map(Node, chain.applied(written.nodes())))
    tensors = {**plan.tensors, **chain.tensors}
    ports = [tuple(Port(t, t) for t in names) for names in (written.inputs, group.outputs)]
    graph = Graph("shared", (), *ports, tensors, {}, nodes)
    drawn = draw(plans(graph))
    variant, upper = drawn.groups[0].variants[0], drawn.groups[0].variants[0].levels[1:]
    leader = next(node.expr for node in nodes if node.name == chain.leader)
    extents = {iterator: int(leader.domain[iterator].value) for iterator in leader.reduce}  # type: ignore[union-attr]
    step = {iterator: draw(st.integers(1, extent)) for iterator, extent in extents.items()}
    core = draw(st.sampled_from(upper)) if upper else ""
    steps = {
        level: {n: s for n, s in of.items() if n not in chain.members or draw(st.booleans())}
        for level, of in variant.steps.items()
    }
    if core:
        steps[core] = {n: s for n, s in steps[core].items() if n not in chain.members} | {chain.leader: step}
    connect = drawn.groups[0].connect
    if core and draw(st.booleans()):
        connect = dict.fromkeys(connect, core)
    variant = replace(variant, steps=steps, shared=chain.shared)
    plan = replace(drawn, groups=(replace(drawn.groups[0], connect=connect, variants=(variant,)),))
    return Case(graph, {}, plan)


@pytest.mark.feature("W09")
@examples(12, seed=2)
@given(shared_cases())
def test_random_shared_loops(case: Case) -> None:
    check(case)


@pytest.mark.slow
@LONG
@given(shared_cases())
def test_many_random_shared_loops(case: Case) -> None:
    check(case)
