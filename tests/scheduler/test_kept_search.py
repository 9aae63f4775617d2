"""What a search keeps of groups: the same plans with it as without, for other names too, and nothing where it is not to
be trusted."""

import json
import random
from typing import Any

import pytest
from scheduler.alike_models import alike_model
from scheduler.graphs import make_graph
from scheduler.running import device

from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.scheduler import fusion_problem
from tilec.scheduler.kept_search import KeptSearch
from tilec.scheduler.schedule import complete_plan, search_plan
from tilec.spec.recipe import ScheduleOptions

E = {"s": 96, "n": 256, "k": 128}


def layers(prefix: str, count: int, symbols: tuple[str, ...] = ()) -> Graph:
    """Products with normalisations between them, `count` that are alike."""
    rows = symbols[0] if symbols else 96
    extents = {**E, "s": rows}
    texts, shapes, last = [], {}, f"{prefix}x"
    for number in range(count):
        name = f"{prefix}{number}"
        shapes[f"{name}w"] = (256, 256)
        texts += [
            (f"{name}h[s, n] = sum(k, {last}[s, k] * {name}w[k, n])", {**extents, "k": 256}),
            (f"{name}m[s] = max(n, {name}h[s, n])", extents),
            (f"{name}y[s, n] = exp({name}h[s, n] - {name}m[s])", extents),
        ]
        last = f"{name}y"
    return make_graph({f"{prefix}x": (rows, 256)}, texts, [last], shapes, list(symbols))


def planned(graph: Graph, target: str, kept: dict[str, dict[str, Any]] | None) -> Plan:
    """The plan, with what searches before kept by scope, to which it adds."""

    def of(scope: str) -> KeptSearch:
        return KeptSearch(scope, dict((kept or {}).get(scope, {})))

    state = search_plan(graph, device(target), ScheduleOptions(), kept=of if kept is not None else None)
    plan = complete_plan(state)
    cache = state.search.root.cache
    if kept is not None and cache.kept is not None:
        new = cache.kept.new_entries(cache.looks, cache.tiles, cache.registers)
        kept.setdefault(cache.kept.scope, {}).update(json.loads(json.dumps(new)))
    return plan


@pytest.mark.slow_cases("open-a100")
@pytest.mark.parametrize("target", ["zen5-avx512", "a100"])
@pytest.mark.parametrize("symbols", [(), ("rows",)], ids=["fixed", "open"])
def test_plans_are_the_same_and_nothing_is_priced_twice(
    target: str, symbols: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, kept = layers("a", 2, symbols), dict[str, dict[str, Any]]()
    alone = planned(graph, target, None)
    assert planned(graph, target, kept) == alone
    before = json.dumps(kept)
    if not symbols:
        monkeypatch.setattr(fusion_problem, "look", None)
    assert planned(graph, target, kept) == alone
    if not symbols:
        assert json.dumps(kept) == before


def test_groups_of_another_model_are_not_priced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, dict[str, Any]] = {}
    planned(layers("a", 3), "zen5-avx512", kept)
    alone = planned(layers("other_", 2), "zen5-avx512", None)
    calls: list[object] = []
    monkeypatch.setattr(fusion_problem, "register_options", lambda *given: calls.append(given))
    assert planned(layers("other_", 2), "zen5-avx512", kept) == alone
    assert calls == []


@pytest.mark.slow_cases("0-a100")
@pytest.mark.parametrize("target", ["zen5-avx512", "a100"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))])
def test_models_that_are_alike_are_planned_as_without_what_the_others_left(target: str, seed: int) -> None:
    """An entry that was found in other surroundings, and does not hold here, would change a plan."""
    draw, kept = random.Random(seed), dict[str, dict[str, Any]]()
    for number in range(4):
        graph = alike_model(draw, f"m{number}_", open_rows=seed % 4 == 3)
        assert planned(graph, target, kept) == planned(graph, target, None), number


def test_all_that_decides_an_entry_is_in_its_key() -> None:
    parts: tuple[Any, ...] = ((1, ("a",)), (2, ("a", "b")))
    search = KeptSearch("scope", {}, {1: "one", 2: "two", 3: "three"})
    groups = [
        (parts, ("b",), (), (), ()),
        (parts, ("a", "b"), (), (), ()),
        (parts, ("b",), (), (), ((("x", 0, 8),),)),
        (parts[::-1], ("b",), (), (), ()),
        (((1, ("a",)), (2, ("b", "a"))), ("b",), (), (), ()),
        (((1, ("a",)), (3, ("a", "b"))), ("b",), (), (), ()),
    ]
    keys: list[Any] = [*groups, ("alone", groups[0])]
    names = [search._name(table, key) for table in ("look", "tiles") for key in keys]
    names += [search._name("registers", (number, within)) for number in (1, 2) for within in ("a", "b")]
    assert None not in names
    assert len(set(names)) == len(names)
    assert search._name("look", (parts, ("b",), ("n",), (), ())) is None
    assert search._name("look", (((4, ("a",)),), ("a",), (), (), ())) is None


def test_another_target_and_other_sizes_have_entries_of_their_own() -> None:
    kept: dict[str, dict[str, Any]] = {}
    for target in ("zen5-avx512", "avx2"):
        planned(layers("a", 1), target, kept)
    planned(layers("a", 1, ("rows",)), "avx2", kept)
    assert len(kept) == 3


@pytest.mark.parametrize("damage", [None, 7, [], [1], {"sizes": 3}, [3, [{"sizes": {}}]], "x"])
def test_damaged_entries_cost_time_only(damage: Any) -> None:
    kept: dict[str, dict[str, Any]] = {}
    alone = planned(layers("a", 1), "zen5-avx512", kept)
    for entries in kept.values():
        entries.update(dict.fromkeys(entries, damage))
    assert planned(layers("a", 1), "zen5-avx512", kept) == alone
