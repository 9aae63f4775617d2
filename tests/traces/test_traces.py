"""Traces: their sizes, their figures, and one of a small model beside a peer that is none."""

import argparse
import json
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from cli.models import mlp

from tests.traces import __main__ as command
from tests.traces import turns
from tests.traces.feeds import Array, Feeds, Interface
from tests.traces.figures import distinct, figures
from tests.traces.report import COLUMNS, line
from tests.traces.runtimes import OURS, PEERS, REFERENCE
from tests.traces.static import spread_over
from tests.traces.trace import TRACES, OpenSize, Trace
from tests.traces.turns import Call, Measured, relative_error
from tests.warm import warm_processes  # noqa: F401
from tilec.bench.runners import Needs
from tilec.zoo.registry import MODELS

SMALL = Trace("mlp", {"batch": OpenSize(1, 40, 8)}, {}, 5)


class Reference:
    """The small model in NumPy, and wrong by a thousandth."""

    def __init__(self, model: Path, trace: Trace, interface: Interface, threads: int) -> None:
        import onnx
        from onnx import numpy_helper

        self._weights = {each.name: numpy_helper.to_array(each) for each in onnx.load(model).graph.initializer}
        self._found: Array = np.empty(0)

    def run(self, feeds: Feeds) -> None:
        hidden = np.maximum(feeds["x"] @ self._weights["w1"] + self._weights["b1"], 0)
        self._found = 1.001 * (hidden @ self._weights["w2"])

    def results(self) -> dict[str, Array]:
        return {"y": self._found}


@pytest.mark.parametrize("name", TRACES)
def test_the_sizes_of_a_trace(name: str) -> None:
    trace = TRACES[name]
    sizes = trace.drawn(0)
    assert sizes == trace.drawn(0) != trace.drawn(1)
    assert len(sizes) == trace.calls
    assert trace.model in MODELS
    for symbol, size in trace.open.items():
        drawn = [each[symbol] for each in sizes]
        assert all(size.range.holds(each) for each in (*drawn, trace.pivot[symbol], trace.least[symbol]))
        assert len(set(drawn)) >= 4
        assert drawn == [each // size.divisor * size.divisor for each in drawn]


def test_half_of_the_sizes_lie_below_the_median_and_the_tail_is_long() -> None:
    size = OpenSize(1, 10**6, 64)
    generator = np.random.default_rng(0)
    drawn = [size.drawn(generator) for _ in range(4000)]
    assert 60 <= median(drawn) <= 68
    assert np.mean(drawn) > 1.2 * median(drawn)
    assert {OpenSize(8, 10, 64, divisor=4).drawn(generator) for _ in range(99)} == {8}


def test_the_figures_of_a_trace() -> None:
    def call(size: int, new: bool, ours: tuple[float, float], one: float, other: float) -> Call:
        error = {OURS: size / 100} if new else {}
        return Call(
            {"n": size},
            new,
            {OURS: ours[0], "one": one, "other": other},
            {OURS: ours[1], "one": one, "other": other},
            error,
        )

    calls = (
        call(1, True, (1.0, 0.5), 4.0, 1.0),
        call(2, True, (4.0, 3.9), 4.0, 16.0),
        call(1, False, (1.0, 1.0), 1.0, 8.0),
    )
    found = figures(Measured(calls, {name: Needs(0.25, 1 << 20) for name in (OURS, "one", "other")}))
    assert found.sums == pytest.approx(9 / 6)
    assert found.mean == pytest.approx(4 ** (1 / 3))
    assert found.again == pytest.approx((4 / 0.5 * 4 / 3.9 * 1 / 1) ** (1 / 3))
    ours = found.runtimes[OURS]
    assert (ours.seconds, ours.p50, ours.loading, ours.memory, ours.error) == (6.0, 1.0, 0.25, 1 << 20, 0.02)
    assert ours.new_size == pytest.approx(0.3)
    assert found.runtimes["one"].new_size == 0
    assert distinct(calls) == 2


def test_errors_are_relative_to_the_largest_value() -> None:
    wanted = np.array([0.0, -4.0], np.float32)
    assert relative_error(wanted + np.float32(1), wanted) == 0.25
    assert relative_error(wanted[:0], wanted[:0]) == 0
    assert relative_error(wanted[:1], wanted) == np.inf
    assert relative_error(np.array([np.nan, 1]), wanted) == np.inf


def test_sizes_to_compile_alone_are_spread_over_those_of_the_trace() -> None:
    calls = [{"h": h, "w": w} for h, w in ((4, 4), (1, 2), (9, 1), (1, 2), (30, 2))]
    assert spread_over(calls, 2) == [{"h": 1, "w": 2}, {"h": 30, "w": 2}]
    assert len(spread_over(calls, 9)) == 4
    assert spread_over(calls, 0) == []


@pytest.mark.slow
def test_a_trace_of_a_small_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PAUSE", 0.0)
    asked = argparse.Namespace(seed=0, calls=4, threads=1, static=1)
    result = command.of_file(mlp(tmp_path / "m.onnx", "batch"), SMALL, asked, {REFERENCE: Reference})
    assert [call.sizes for call in result.measured.calls] == list(SMALL.drawn(0))[:4]
    assert all(set(call.seconds) == {OURS, REFERENCE} for call in result.measured.calls)
    assert result.figures.runtimes[OURS].error == pytest.approx(0.001, rel=0.05)
    assert result.compile_all > 0 < result.compile_pivot
    assert result.of_static is not None
    assert line(result).count("|") == len(COLUMNS) + 1
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", PEERS)
def test_peers_take_every_size(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    from tests.traces.feeds import interface_of
    from tests.traces.timed import Timed

    model = mlp(tmp_path / "m.onnx", "batch")
    interface = interface_of(model)
    timed, own = Timed(PEERS[name], model, SMALL, interface, 1), Timed(Reference, model, SMALL, interface, 1)
    for size in (1, 40, 7):
        for each, folder in ((timed, "theirs"), (own, "own")):
            assert min(each.call({"batch": size})) > 0
            each.store(tmp_path / f"{folder}{size}")
        found, wanted = (np.load(tmp_path / f"{folder}{size}" / "0.npy") for folder in ("theirs", "own"))
        assert relative_error(found, wanted) == pytest.approx(0.001, rel=0.05)


def test_what_fails_is_said_and_what_is_done_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = command.Result(SMALL, Measured((), {}), command.figures, 2.0, 1.0)  # type: ignore[arg-type]
    answers = iter([command.TilecError("no"), done, KeyboardInterrupt()])

    def of_model(*_: object) -> command.Result:
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(command, "of_model", of_model)
    monkeypatch.setattr(command, "line", lambda result: f"| {result.trace.model} |")
    monkeypatch.setattr(command, "as_json", lambda result: {"model": result.trace.model})
    kept = tmp_path / "new" / "traces.json"
    assert command.main(["bert-base", "gpt2", "unet", "--json", str(kept)]) == 130
    said = capsys.readouterr()
    assert said.out.splitlines()[2:] == ["| mlp |"]
    assert "bert-base: no" in said.err
    assert "unet: interrupted" in said.err
    assert [each["model"] for each in json.loads(kept.read_text())["models"]] == ["mlp"]
