"""Groups at several sizes: where they fit, and what a first look expects of them."""

from dataclasses import replace

import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, problem_of

from tilec.ir.intervals import Candidates
from tilec.scheduler import fusion_problem
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.target_model import target_model_of

ZEN5 = target_model_of(device("zen5-avx512"))
FURTHER = (Candidates({"n": 512}),)


def normalised() -> FusionProblem:
    """All of a tensor is held between its sum and what the sum scales: 128 KiB at the pivot."""
    table = {"i": "n", "j": 256}
    nodes = [
        ("a[i, j] = exp(x[i, j])", table),
        ("s[k] = sum(i, j, a[i, j])", {"k": 1, **table}),
        ("y[i, j] = a[i, j] / s[0]", table),
    ]
    graph = make_graph({"x": ("n", 256)}, nodes, ["y"], symbols=["n"])
    return replace(problem_of(graph, ZEN5), numbers=Candidates({"n": 128}))


def projected() -> FusionProblem:
    """A product of something computed before."""
    nodes = [
        ("m[i] = max(k, x[i, k])", {"i": "n", "k": 256}),
        ("a[i, k] = exp(x[i, k] - m[i])", {"i": "n", "k": 256}),
        ("y[i, j] = sum(k, a[i, k] * w[k, j])", {"i": "n", "j": 64, "k": 256}),
    ]
    graph = make_graph({"x": ("n", 256)}, nodes, ["y"], constants={"w": (256, 64)}, symbols=["n"])
    return replace(problem_of(graph, ZEN5), numbers=Candidates({"n": 128}))


def test_a_look_says_where_nothing_fits_at_a_further_size() -> None:
    """No group grows over it then, nor is it searched."""
    problem = normalised()
    everything = tuple(range(len(problem.parts)))
    assert problem.look(everything)[0] <= ZEN5.capacity
    held, objective, _ = replace(problem, further=FURTHER, cache=problem.cache.without_decisions()).look(everything)
    assert held > ZEN5.capacity
    assert objective == float("inf")


@pytest.mark.parametrize("further", [(), FURTHER])
def test_a_look_expects_what_a_search_finds(further: tuple[Candidates, ...]) -> None:
    """It is of the same sizes."""
    problem = replace(projected(), further=further)
    everything = tuple(range(len(problem.parts)))
    found = problem.core_tiles(everything)[0].objective
    assert 0.9 * found <= problem.look(everything)[1] <= 1.05 * found


def test_register_tiles_that_fit_a_group_already_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[object] = []
    search = fusion_problem.task_tiles
    monkeypatch.setattr(
        fusion_problem, "task_tiles", lambda problem, *rest: searched.append(problem) or search(problem, *rest)
    )
    monkeypatch.setattr(fusion_problem, "fitted", lambda problem, *_: list(problem.tiles))
    problem = projected()
    everything = tuple(range(len(problem.parts)))
    count = len(problem.usual_tiles(everything))
    searched.clear()
    problem.core_tiles(everything)
    assert len(searched) == count
