"""Candidates are chosen by the record, by time, or by the model, and always the same way."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention
from scheduler.running import tiny

from tilec.ir.plan import Group, Plan
from tilec.scheduler import schedule
from tilec.scheduler.building.subplan import subplan
from tilec.scheduler.tuning.record import Record, parse_record, record_text
from tilec.scheduler.tuning.signature import Signature, signature
from tilec.scheduler.tuning.tuner import Tuner, Tuning
from tilec.spec.recipe import ScheduleOptions

HERE = {"device": "d1", "tvm": "0.27"}
WHOLE = schedule(attention(), tiny(), ScheduleOptions(fusion="register"))
GROUP = WHOLE.groups[0]
SAME = signature(GROUP.nodes, GROUP.outputs, WHOLE.tensors, set())


def plan_of(rows: int) -> Plan:
    """The first group alone, `rows` as a tile size at the level of a core."""
    (variant,) = GROUP.variants
    final = GROUP.nodes[-1].expr
    tiles = {**variant.tiles, "l2": {final.tensor: {final.spatial[0]: rows}}}
    group = replace(GROUP, variants=(replace(variant, tiles=tiles),))
    return subplan([group], group.outputs, WHOLE.tensors, WHOLE.levels, WHOLE.device)


def rows_of(plan: Plan) -> int:
    (variant,) = plan.groups[0].variants
    return variant.tiles["l2"][GROUP.name][GROUP.nodes[-1].expr.spatial[0]]


class Clock:
    """Measures as it is told to: seconds by rows; counts what it was asked."""

    def __init__(self, seconds: Callable[[int], float | None]) -> None:
        self.seconds = seconds
        self.asked: list[int] = []

    def __call__(self, plans: Sequence[Plan]) -> list[float | None]:
        self.asked += [rows_of(plan) for plan in plans]
        return [self.seconds(rows_of(plan)) for plan in plans]


def tuned(record: Record, clock: Clock | None = None, candidates: Sequence[int] = (8, 4, 2, 1), **given):
    """The choice, and the record afterwards."""
    kept = [record]

    def keep(entry, instead):
        kept.append(kept[-1].merged(entry, instead))
        return kept[-1]

    tuner = Tuner(Tuning(record, given.pop("setting", HERE), given.pop("budget", 20), clock, keep, **given))
    return tuner.chosen(SAME, candidates, plan_of), kept[-1], tuner.sources


@pytest.mark.feature("W20", "A18")
def test_the_fastest_of_the_first_candidates_is_taken() -> None:
    clock = Clock(lambda rows: rows * 1e-6)
    assert tuned(Record(), clock)[0] == 1
    assert tuned(Record(), clock, budget=3)[0] == 2
    assert clock.asked == [8, 4, 2, 1, 8, 4, 2]


def test_the_model_decides_between_times_that_are_hardly_different() -> None:
    assert tuned(Record(), Clock(lambda rows: 1e-6 + rows * 1e-9))[0] == 8
    assert tuned(Record(), Clock(lambda rows: 1e-6 + rows * 1e-7))[0] == 1


def test_a_candidate_that_fails_is_out_and_nothing_else_changes() -> None:
    assert tuned(Record(), Clock(lambda rows: None if rows == 1 else rows * 1e-6))[0] == 2
    choice, record, sources = tuned(Record(), Clock(lambda _rows: None))
    assert (choice, record.entries) == (8, {})
    assert sources == {"no candidate could be built and run": 1}


def test_equal_candidates_are_measured_once() -> None:
    clock = Clock(lambda rows: rows * 1e-6)
    choice, record, _ = tuned(Record(), clock, (8, 8, 4, 8))
    assert choice == 4
    assert clock.asked == [8, 4]
    (entry,) = record.entries.values()
    assert [trial.picoseconds for trial in entry.trials] == [8_000_000, 8_000_000, 4_000_000, 8_000_000]


def test_one_candidate_is_not_measured() -> None:
    clock = Clock(lambda _rows: 1.0)
    assert tuned(Record(), clock, (4,))[0] == 4
    assert clock.asked == []


@pytest.mark.feature("W41")
def test_the_record_decides_and_nothing_is_timed() -> None:
    _, record, _ = tuned(Record(), Clock(lambda rows: rows * 1e-6))
    again = parse_record(record_text(record), "r.json")
    assert again == record
    clock = Clock(lambda rows: -rows * 1e-6)
    for given in ({}, {"clock": clock}, {"candidates": (1, 2, 4, 8)}, {"clock": clock, "candidates": (4, 1)}):
        choice, after, sources = tuned(again, **given)
        assert (choice, after, sources) == (1, again, {"recorded": 1})
    assert clock.asked == []


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"device": "d2", "tvm": "0.27"}, "device differs: recorded d1, here d2"),
        ({"device": "d1", "tvm": "0.28"}, "tvm differs: recorded 0.27, here 0.28"),
        (
            {"device": "d2", "tvm": "0.28"},
            "device differs: recorded d1, here d2; tvm differs: recorded 0.27, here 0.28",
        ),
    ],
)
def test_a_miss_says_why(setting: dict[str, str], why: str) -> None:
    _, record, _ = tuned(Record(), Clock(lambda rows: rows * 1e-6))
    choice, after, sources = tuned(record, setting=setting)
    assert (choice, after, sources) == (8, record, {why: 1})
    assert tuned(Record())[2] == {"no entry for this group": 1}
    assert tuned(record, candidates=(8, 4))[2] == {"what it has chosen is no candidate now": 1}


def test_a_tool_that_is_not_here_may_have_any_version() -> None:
    _, record, _ = tuned(Record(), Clock(lambda rows: rows * 1e-6))
    assert tuned(record, setting={"device": "d1", "tvm": ""})[0] == 1


def test_candidates_that_were_measured_stay_of_interest() -> None:
    _, record, _ = tuned(Record(), Clock(lambda rows: rows * 1e-6))
    assert Tuner(Tuning(record, HERE, 2)).most == 4
    assert Tuner(Tuning(record, HERE, 9)).most == 9
    assert tuned(record, Clock(lambda rows: rows), budget=2)[0] == 1


def test_settings_stand_side_by_side_in_a_record() -> None:
    _, record, _ = tuned(Record(), Clock(lambda rows: rows * 1e-6))
    other = {**HERE, "tvm": "0.28"}
    choice, both, _ = tuned(record, Clock(lambda rows: 1e-6 / rows), setting=other)
    assert (choice, len(both.entries)) == (8, 2)
    assert tuned(both)[0] == 1
    assert tuned(both, setting=other)[0] == 8


def test_more_candidates_are_measured_when_more_are_asked_for() -> None:
    _, record, _ = tuned(Record(), Clock(lambda rows: rows * 1e-6), budget=2)
    assert tuned(record)[0] == 4
    clock = Clock(lambda rows: rows * 1e-6)
    choice, after, _ = tuned(record, clock)
    assert (choice, clock.asked, len(after.entries)) == (1, [8, 4, 2, 1], 1)


def test_an_entry_whose_choice_is_gone_is_measured_again_and_replaced() -> None:
    _, record, _ = tuned(Record(), Clock(lambda rows: rows * 1e-6))
    choice, after, _ = tuned(record, Clock(lambda rows: 1e-6 / rows), (2, 4, 8, 16))
    assert choice == 16
    assert tuned(after, candidates=(2, 4, 8, 16))[0] == 16


def test_what_another_process_recorded_first_is_taken() -> None:
    _, theirs, _ = tuned(Record(), Clock(lambda rows: 1e-6 / rows))
    tuner = Tuner(Tuning(Record(), HERE, 20, Clock(lambda rows: rows * 1e-6), theirs.merged))
    assert tuner.chosen(SAME, (8, 4, 2, 1), plan_of) == 8


def test_every_group_counts_as_progress() -> None:
    heard: list[tuple[int, int]] = []
    lines: list[str] = []
    clock = Clock(lambda rows: None if rows == 4 else rows * 1e-6)
    tuner = Tuner(
        Tuning(Record(), HERE, 20, clock, None, lines.append, lambda done, total: heard.append((done, total)))
    )
    tuner.expect(3)
    for group in (SAME, SAME, replace(SAME, digest="other")):
        tuner.chosen(group, (8, 4, 1), plan_of)
    assert heard == [(1, 3), (2, 3), (3, 3)]
    told = "3 candidates, 1 failed, best 1.0 us, 8.00x faster than the model's (no entry for this group)"
    name = f"{SAME.operators} {', '.join(SAME.makes)}"
    assert lines == [f"group {n} of 3, {name}: {told}" for n in (1, 3)]


@pytest.mark.feature("W41")
def test_signatures_are_equal_for_equal_content_only() -> None:
    alike: dict[str, list[Group]] = {}
    for group in WHOLE.groups:
        alike.setdefault(signed(group).digest, []).append(group)
    assert max(len(groups) for groups in alike.values()) > 1
    assert all(len({group.variants[0].kernel for group in groups}) == 1 for groups in alike.values())
    assert signed(GROUP).digest != signed(GROUP, frozenset(WHOLE.tensors)).digest
    wider = {name: replace(tensor, ttype="f64") for name, tensor in WHOLE.tensors.items()}
    assert signature(GROUP.nodes, GROUP.outputs, wider, set()).digest != SAME.digest


def signed(group: Group, constants: frozenset[str] = frozenset()) -> Signature:
    return signature(group.nodes, group.outputs, WHOLE.tensors, constants)


def test_a_record_keeps_what_the_search_predicted() -> None:
    """Every candidate of a search that measures has the predicted time by which it was ranked, best first."""
    kept = [Record()]

    def keep(entry, instead):
        kept.append(kept[-1].merged(entry, instead))
        return kept[-1]

    tuner = Tuner(Tuning(Record(), HERE, 4, lambda plans: [1e-6] * len(plans), keep))
    sizes = {"m": 48, "n": 40, "k": 32, "p": 24}
    texts = ("a[m, n] = sum(k, x[m, k] * w[k, n])", "b[m, n] = tanh(a[m, n])", "y[m, p] = sum(n, b[m, n] * v[n, p])")
    graph = make_graph({"x": (48, 32)}, [(t, sizes) for t in texts], ["y"], {"w": (32, 40), "v": (40, 24)})
    schedule(graph, tiny(), tuner=tuner)
    predictions = [[trial.predicted for trial in entry.trials] for entry in kept[-1].entries.values()]
    assert predictions
    assert all(0 < min(times) == times[0] for times in predictions)
