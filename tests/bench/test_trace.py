"""trace: what groups take, beside the least that their device could take."""

import pytest

from bench.plans import host, product
from tilec.bench.trace import events, shares, slow
from tilec.runtime.times import Span

OPERATIONS = 2 * 48 * 64 * 32 + 48 * 64


def runs(*lengths: int) -> list[tuple[Span, ...]]:
    """Runs of the group with a call before it, each group so many nanoseconds long."""
    return [(Span("fallback/0.onnx", 1000, 1500), Span("r", 2000, 2000 + length)) for length in lengths]


@pytest.mark.feature("W55")
def test_a_group_stands_beside_its_roofline() -> None:
    call, group = shares(product(8), runs(9000, 3000, 5000), host())
    assert (group.name, group.seconds) == ("r", pytest.approx(5e-6))
    # Every task reads the weights, the cache fetches them once; the place of the result too, before it is written.
    assert group.bytes == 4 * (48 * 32 + 32 * 64 + 2 * 48 * 64)
    assert group.operations == OPERATIONS
    rate = max(unit.rate for unit in host().compute if set(unit.inputs) == {"f32"})
    bandwidth = host().bandwidth("dram")
    assert bandwidth is not None
    assert group.least >= 0.999 * max(group.bytes / bandwidth, OPERATIONS / rate), "and at other levels"
    assert group.roofline == pytest.approx(group.least / 5e-6)
    assert (call.bytes, call.operations, call.roofline) == (0, 0, None)


def test_the_trace_is_the_run_of_median_length() -> None:
    found = runs(9000, 3000, 5000)
    head, call, group = events(7, "m", found, shares(product(8), found, host()), "digest")
    assert head == {"args": {"name": "m", "plan": "digest"}, "name": "process_name", "ph": "M", "pid": 7, "tid": 0}
    assert (group["ph"], group["pid"], group["ts"], group["dur"]) == ("X", 7, 1.0, 5.0)  # type: ignore[index, call-overload]
    assert (call["cat"], group["cat"]) == ("call", "group")  # type: ignore[index, call-overload]
    assert group["args"]["median_us"] == 5.0  # type: ignore[index, call-overload]


def test_groups_side_by_side_stand_on_lines_of_their_own() -> None:
    run = (Span("r", 0, 10), Span("fallback/0.onnx", 4, 6), Span("fallback/1.onnx", 10, 12))
    _, *made = events(0, "m", [run], shares(product(8), [run], host()))
    assert [each["tid"] for each in made] == [0, 1, 0]  # type: ignore[index, call-overload]


def test_what_falls_short_and_matters_is_named() -> None:
    long = shares(product(8), [(Span("r", 0, 10**9), Span("fallback/0.onnx", 0, 10))], host())
    assert [share.name for share in slow(long)] == ["r"]
    assert slow(shares(product(8), [(Span("r", 0, 10**3), Span("fallback/0.onnx", 0, 10**9))], host())) == ()
    assert slow(shares(product(8), [(Span("r", 0, 1),)], host())) == ()


def test_a_model_without_work_has_an_empty_trace() -> None:
    assert [event["ph"] for event in events(0, "m", [(), ()], ())] == ["M"]  # type: ignore[index, call-overload]
    assert slow(()) == ()
