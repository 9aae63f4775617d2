"""Parts that read other constant places are alike, where what they cost does not depend on these."""

import pytest
from scheduler.graphs import make_graph
from scheduler.running import problem_of, tiny

from tilec.scheduler import fusion_problem, schedule
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.target_model import target_model_of
from tilec.spec.resolve import resolve_device

E = {"m": 8, "n": 6, "k": 5}


def problem(*bodies: str) -> FusionProblem:
    """A part `y0`, `y1`, ... for each body, which reads an input `x[m, t, k]` of nine steps and weights `w`."""
    nodes = [(f"y{n}[m, n] = {body}", E) for n, body in enumerate(bodies)]
    outputs = [f"y{n}" for n in range(len(bodies))]
    graph = make_graph({"x": (8, 9, 5), "v": (8, 6)}, nodes, outputs, {"w": (5, 6)})
    return problem_of(graph, target_model_of(tiny()))


def product(step: int | str) -> str:
    return f"sum(k, x[m, {step}, k] * w[k, n])"


@pytest.mark.feature("W41")
def test_products_of_all_steps_are_one_part() -> None:
    made = problem(*map(product, range(9)))
    assert len({each.number for each in made.descriptions}) == 1
    assert len({made.key((n,), (f"y{n}",)) for n in range(9)}) == 1
    assert made.singles[8].sizes == made.singles[0].sizes


@pytest.mark.feature("W41")
def test_groups_are_alike_whose_steps_are_as_far_apart() -> None:
    made = problem(*map(product, (0, 1, 3, 4, 6)))

    def key(*members: int) -> object:
        return made.key(members, tuple(f"y{n}" for n in members))

    assert key(0, 1) == key(2, 3)
    assert key(1, 2) != key(0, 1)
    assert key(0, 2) == key(2, 4)


def test_steps_count_beside_a_reader_of_all() -> None:
    made = problem(product(2), product(4), "sum(k, x[m, n, k] * w[k, n])")
    assert made.key((0, 2), ("y0", "y2")) != made.key((1, 2), ("y1", "y2"))


def test_places_that_one_part_reads_count_from_the_first() -> None:
    made = problem(
        "v[m, n] + x[m, 2, 0] + x[m, 3, 0]", "v[m, n] + x[m, 5, 0] + x[m, 6, 0]", "v[m, n] + x[m, 5, 0] + x[m, 7, 0]"
    )
    numbers = [each.number for each in made.descriptions]
    assert numbers[0] == numbers[1] != numbers[2]


def test_places_in_what_the_group_makes_count_from_its_beginning() -> None:
    """Its rows may be made of branches."""
    nodes = [
        ("a[m, n] = v[m, n] * 2.0", E),
        *((f"y{t}[m] = sum(k, a[m, {t}] * x[m, 0, k])", {"m": 8, "k": 5}) for t in (0, 3)),
    ]
    graph = make_graph({"x": (8, 9, 5), "v": (8, 6)}, nodes, ["a", "y0", "y3"])
    made = problem_of(graph, target_model_of(tiny()))
    assert made.descriptions[1].number == made.descriptions[2].number
    assert made.key((0, 1), ("a", "y0")) != made.key((0, 2), ("a", "y3"))


@pytest.mark.slow_cases("a100")
@pytest.mark.feature("W41")
@pytest.mark.parametrize("kind", ["avx2", "a100", "ipu-mk2"])
def test_plans_are_those_of_parts_that_are_looked_at_one_by_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    e = {"m": 64, "n": 32, "k": 48}
    nodes = [(f"y{t}[m, n] = sum(k, x[m, {t}, k] * w{t % 2}[k, n])", e) for t in (0, 1, 2, 5, 6, 7)]
    nodes += [(f"z{t}[m, n] = tanh(y{t}[m, n] + y{t + 1}[m, n]) * x[m, {t}, n]", e) for t in (0, 5)]
    nodes += [("s[m, k] = x[m, 3, k] + x[m, 4, k] * x[m, 6, k]", e)]
    weights = {"w0": (48, 32), "w1": (48, 32)}
    graph = make_graph({"x": (64, 8, 48)}, nodes, ["y2", "y7", "z0", "z5", "s"], weights)
    device = resolve_device(kind)
    plan = schedule(graph, device)
    monkeypatch.setattr(fusion_problem, "constant_places", lambda _nodes: {})
    assert plan == schedule(graph, device)
