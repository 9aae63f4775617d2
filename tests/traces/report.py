"""What a model's trace found, as a line of a Markdown table and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any

from tests.traces.figures import Figures, RuntimeFigures, distinct
from tests.traces.runtimes import OURS
from tests.traces.static import Against
from tests.traces.trace import Trace
from tests.traces.turns import Measured

COLUMNS = (
    "model",
    "calls (sizes)",
    "compile, CPU s",
    "of one size",
    "trace, s",
    "mean ratio",
    "ratio of sums",
    "again",
    "new size, ms",
    "p50, ms",
    "peak MiB",
    "error",
    "of static",
)


@dataclass(frozen=True, slots=True)
class Result:
    """A trace, what was measured, processor seconds of the compilation for all sizes and for the pivot alone, and the
    comparison with models for one size, where it was asked for."""

    trace: Trace
    measured: Measured
    figures: Figures
    compile_all: float
    compile_pivot: float
    static: Sequence[Against] = ()

    @property
    def of_static(self) -> float | None:
        """Processor time of the model for all sizes over that of those for one size, geometric mean."""
        return geometric_mean(each.every / each.alone for each in self.static) if self.static else None


def head() -> str:
    """The head of the table."""
    return f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def line(result: Result) -> str:
    """A model's line; figures of several runtimes are those of tilec, onnxruntime and OpenVINO."""
    found, calls = result.figures, result.measured.calls

    def each(text: Callable[[RuntimeFigures], str]) -> str:
        return ", ".join(text(runtime) for runtime in found.runtimes.values())

    ratio = result.of_static
    cells = (
        result.trace.model,
        f"{len(calls)} ({distinct(calls)})",
        f"{result.compile_all:.1f}",
        f"{result.compile_pivot:.1f} ({result.compile_all / result.compile_pivot:.2f})",
        each(lambda its: f"{its.seconds:.2f}"),
        f"{found.mean:.2f}",
        f"{found.sums:.2f}",
        f"{found.again:.2f}",
        each(lambda its: f"{1e3 * its.new_size:.1f}"),
        each(lambda its: f"{1e3 * its.p50:.1f}"),
        each(lambda its: "" if its.memory is None else f"{its.memory / 2**20:.0f}"),
        f"{found.runtimes[OURS].error:.1e}",
        "" if ratio is None else f"{ratio:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def as_json(result: Result) -> dict[str, Any]:
    """Everything, in seconds and bytes."""
    return {
        "model": result.trace.model,
        "sizes": result.trace.flags,
        "compile_cpu_seconds": {"all": result.compile_all, "pivot": result.compile_pivot},
        "figures": asdict(result.figures),
        "calls": [asdict(call) for call in result.measured.calls],
        "static": [asdict(each) for each in result.static],
        "of_static": result.of_static,
    }
