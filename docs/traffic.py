"""The table of traffic against bounds in the manual: `python -m docs.traffic [MODEL ...]` plans networks of the zoo on
two devices and writes their rows; other rows stay."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from docs import provenance
from tilec.analysis.ratios import plan_ratio
from tilec.analysis.totals import at_level, lowest
from tilec.artifact import write_text
from tilec.importer import import_model
from tilec.ir.expr import constant_value
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.pipeline.code_decisions import decide_for
from tilec.pipeline.plan_bounds import plan_with_bounds
from tilec.report.formatting import bytes_text
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device
from tilec.zoo import export, names

PAGE = Path(__file__).parent / "benchmarks.md"
DEVICES = ("a100", "zen5-avx512")

_REGION = re.compile(r"(<!-- planned: traffic -->\n).*?(<!-- end -->)", re.DOTALL)


def row(model: str) -> str:
    """The row of a network: on every device the bytes of the lowest pair of levels, planned and attainable, and those
    that go into tiles, planned and attainable in tasks for all cores."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{model}.onnx")
        export(model, path)
        graph = import_model(path).graph
        cells = [cell for device in DEVICES for cell in _cells(_plan(graph, device))]
    return "| " + " | ".join([model, *cells]) + " |"


def _plan(graph: Graph, device: str) -> Plan:
    spec = resolve_device(device)
    return plan_with_bounds(schedule(graph, spec, decide=decide_for(spec)), spec)


def _cells(plan: Plan) -> Iterator[str]:
    ratio = plan_ratio(plan, lowest(plan))
    assert ratio is not None
    yield bytes_text(ratio.moved)
    yield bytes_text(ratio.bound.known)
    yield "?" if ratio.times is None else f"{ratio.times:.2f}"
    tiled = next(level for level in plan.unfused if level != lowest(plan))
    above = plan_ratio(plan, tiled)
    yield bytes_text(constant_value(at_level(plan, tiled)))
    parallel = above.bound.parallel if above is not None else None
    yield "-" if parallel is None else bytes_text(parallel)
    yield "-" if above is None or above.parallel_times is None else f"{above.parallel_times:.2f}"


def head() -> list[str]:
    """The head of the table."""
    texts = ["model"]
    for device in DEVICES:
        levels = [level.name for level in resolve_device(device).levels]
        core = resolve_device(device).core_level
        below, above = f"{levels[0]}->{levels[1]}", f"{levels[levels.index(core) - 1]}->{core}"
        texts += [f"{device}: {below}", "attainable", "ratio", above, "parallel", "ratio"]
    return ["| " + " | ".join(texts) + " |", "|" + "---|" * len(texts)]


def rows_of(page: str) -> dict[str, str]:
    """Network -> its row in a page."""
    lines = _REGION.search(page).group(0).splitlines()  # type: ignore[union-attr]
    found = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    return {model: line for model, line in found.items() if model in names()}


def main(models: list[str]) -> None:
    """Write the rows of `models`, of all without any."""
    for model in models or names():
        text = PAGE.read_text(encoding="utf-8")
        rows = {**rows_of(text), model: row(model)}
        table = "\n".join([*head(), *(rows[name] for name in names() if name in rows)])
        write_text(PAGE, _REGION.sub(rf"\g<1>\n{table}\n\n\g<2>", text))
    provenance.mark(() if models else ("traffic",))


if __name__ == "__main__":
    main(sys.argv[1:])
