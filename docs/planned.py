"""Tables and examples of the manual with figures of plans: `python -m docs.planned [NAME ...]` plans anew.

It writes them into their pages, all without names. A page has a region between `<!-- planned: NAME -->` and
`<!-- end -->` for each; `docs.traffic` writes `traffic`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory

from docs import ladder, provenance
from tilec.analysis.patterns import PatternCounts, pattern_counts
from tilec.artifact import write_text
from tilec.cli.summary import plan_line
from tilec.importer import import_model
from tilec.ir.expr import Expr, constant_value
from tilec.ir.plan import Plan
from tilec.pipeline.code_decisions import decide_for
from tilec.pipeline.plan_bounds import plan_with_bounds
from tilec.pipeline.sweep import sweep
from tilec.report.formatting import bytes_text, time_text
from tilec.report.sweep import Row, pattern_totals
from tilec.scheduler import schedule
from tilec.spec.device import DeviceSpec
from tilec.spec.located import Located, parse_yaml, validate
from tilec.spec.resolve import packaged, recipe_source, resolve_device
from tilec.spec.sweep import SweepRecipe
from tilec.zoo import export, names

DOCS = Path(__file__).parent

_REGION = r"(<!-- planned: {} -->\n).*?(<!-- end -->)"

FUSION = {
    "models": ["resnet-50", "mobilenet-v2", "shufflenet-v2", "vgg16", "unet", "bert-base", "vit-s32", "nafnet",
               "nerf-mlp", "llama-layer-prefill", "llama-layer-decode"],
    "devices": ["zen5-avx512", "a100"],
}  # fmt: skip
"""The sweep of the table of fusion."""


PATTERN_HEAD = ["model", "groups", "patterns", "with two or more reductions", "largest, nodes"]
"""Head of the table of patterns."""

WELDER = ["Welder, all models", "", "about 300", "89", "48 operators"]
"""The patterns of its table 4, in cells of the same table."""


@dataclass(frozen=True)
class Region:
    """A region of a page and its lines, which take as long to make as their plans."""

    page: str
    lines: Callable[[], list[str]]


def rows_of_recipe(name: str) -> list[Row]:
    """The rows of a packaged sweep."""
    source = recipe_source(name)
    located = parse_yaml(source.text, source.place)
    file = packaged("recipes")[name]
    folder = file.parent if isinstance(file, Path) else Path()
    return _rows(located, folder)


def _rows(located: Located, folder: Path) -> list[Row]:
    recipe = validate(SweepRecipe, located)
    rows = sweep(recipe, located, lambda *_: None, {"models": folder, "devices": folder})
    if wrong := [row for row in rows if row.found is None]:
        raise SystemExit(f"{wrong[0].model}: {wrong[0].error}")
    return rows


def sensitivity() -> list[str]:
    """Gains of full fusion over none, by size of the input."""
    head = ["model", "size", "device", "traffic, none / full", "gain", "predicted, none / full", "gain"]
    return _table(head, [_gain(*pair) for pair in _pairs(rows_of_recipe("sensitivity"))])


def host_memory() -> list[str]:
    """Bytes over the link to the host, with and without fusion."""
    rows = []
    for none, full in _pairs(rows_of_recipe("studies/host-memory")):
        before, after = _traffic(none), _traffic(full)
        image = f"{none.sizes['seq']} x {none.sizes['seq']}"
        rows.append([none.model, image, none.device, bytes_text(before), bytes_text(after), f"{before / after:.0f}"])
    return _table(["model", "image", "device", "none", "full", "times less"], rows)


def batches(name: str) -> list[str]:
    """Launches, traffic and time of a study at batch 1 and 64, with the geometric means of the gains."""
    head = ["model", "batch", "launches, none / full", "traffic, none / full", "gain", "predicted, none / full", "gain"]
    cells, gains = [], dict[int, list[tuple[float, float]]]()
    for none, full in _pairs(rows_of_recipe(name)):
        assert none.found is not None
        assert full.found is not None
        model, _, _, traffic, less, times, gain = _gain(none, full, "batch")
        batch = none.sizes["batch"]
        launches = f"{none.found.groups} / {full.found.groups}"
        cells.append([model, str(batch), launches, traffic, less, times, gain])
        gains.setdefault(batch, []).append((float(less), float(gain)))
    for batch, pairs in gains.items():
        means = [f"{geometric_mean(column):.2f}" for column in zip(*pairs, strict=True)]
        cells.append(["geometric mean", str(batch), "", "", means[0], "", means[1]])
    return _table(head, cells)


def figure_2() -> list[str]:
    """MatMul and Softmax, alone and connected, with the tiles of the search."""
    rows = [
        [row.fusion, str(row.found.groups), bytes_text(_traffic(row)), time_text(row.found.picoseconds), row.tiles]
        for row in rows_of_recipe("studies/matmul-softmax")
        if row.found is not None
    ]
    return _table(["fusion", "kernels", "traffic", "predicted", "tiles"], rows)


def fusion() -> list[str]:
    """Groups, traffic and time of networks by fusion."""
    rows = _rows(Located({"kind": "sweep", **FUSION}, {}, {}, "fusion"), Path())
    cells = []
    for three in zip(*(iter(rows),) * 3, strict=True):
        found = [row.found for row in three if row.found is not None]
        groups = " / ".join(str(each.groups) for each in found)
        traffic = " / ".join(f"{_traffic(row) / 2**20:,.0f}" for row in three)
        times = " / ".join(f"{each.picoseconds / 1e9:.3g}" for each in found)
        cells.append([three[0].model, three[0].device, groups, traffic, times])
    return _table(["model", "device", "groups", "traffic, MiB", "predicted, ms"], cells)


def patterns() -> list[str]:
    """Fused patterns of the networks, of all together, and those that Welder publishes."""
    rows = [row for name in names() for row in rows_of_patterns(name)]
    (together,) = pattern_totals(rows).values()
    cells = [pattern_cells(row) for row in rows]
    return _table(PATTERN_HEAD, [*cells, ["all, each pattern once", "", *_counts(together)], WELDER])


def rows_of_patterns(model: str) -> list[Row]:
    """The row of a network whose patterns are counted."""
    keys = {"kind": "sweep", "models": [model], "devices": ["a100"], "fusion": ["full"]}
    return _rows(Located(keys, {}, {}, "patterns"), Path())


def pattern_cells(row: Row) -> list[str]:
    """The cells of a network: its groups and its patterns."""
    assert row.found is not None
    return [row.model, str(row.found.groups), *_counts(pattern_counts(row.found.patterns))]


def _counts(counts: PatternCounts) -> list[str]:
    return [str(counts.patterns), str(counts.reducing), str(counts.largest)]


def plan_of_bert() -> list[str]:
    """The line of a plan with its bounds."""
    return ["```text", plan_line(planned("bert-base", resolve_device("a100"))), "```"]


def planned(model: str, device: DeviceSpec) -> Plan:
    """The plan of a network of the zoo with its bounds."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{model}.onnx")
        export(model, path)
        graph = import_model(path).graph
    return plan_with_bounds(schedule(graph, device, decide=decide_for(device)), device)


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Rows without fusion, each with its row with full fusion."""
    for none, full in zip(rows[::2], rows[1::2], strict=True):
        assert (none.fusion, full.fusion, none.sizes) == ("none", "full", full.sizes)
        yield none, full


def _gain(none: Row, full: Row, symbol: str = "seq") -> list[str]:
    assert none.found is not None
    assert full.found is not None
    moved, times = (_traffic(none), _traffic(full)), (none.found.picoseconds, full.found.picoseconds)
    return [
        none.model,
        str(none.sizes[symbol]),
        none.device,
        " / ".join(map(bytes_text, moved)),
        f"{moved[0] / moved[1]:.2f}",
        " / ".join(map(time_text, times)),
        f"{times[0] / times[1]:.2f}",
    ]


def _traffic(row: Row) -> int:
    assert row.found is not None
    return _number(row.found.traffic)


def _number(size: Expr) -> int:
    number = constant_value(size)
    assert number is not None
    return number


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", *("| " + " | ".join(cells) + " |" for cells in (head,)), "|" + "---|" * len(head),
            *("| " + " | ".join(cells) + " |" for cells in rows), ""]  # fmt: skip


def _with_head(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose first row is its head."""
    return _table(rows[0], rows[1:])


REGIONS: Mapping[str, Region] = {
    "figure-2": Region("benchmarks.md", figure_2),
    "plan-line": Region("bounds.md", plan_of_bert),
    "sensitivity": Region("benchmarks.md", sensitivity),
    "host-memory": Region("benchmarks.md", host_memory),
    "v100": Region("benchmarks.md", lambda: batches("studies/v100")),
    "mi50": Region("benchmarks.md", lambda: batches("studies/mi50")),
    "patterns": Region("benchmarks.md", patterns),
    "fusion": Region("benchmarks.md", fusion),
    "ladder-memory": Region("benchmarks.md", lambda: _with_head(ladder.memory())),
    "ladder-decode": Region("benchmarks.md", lambda: _with_head(ladder.decode())),
    "ladder-places": Region("benchmarks.md", lambda: _with_head(ladder.places())),
    "ladder-widths": Region("benchmarks.md", lambda: _with_head(ladder.widths())),
    "ladder-breakdown": Region("benchmarks.md", lambda: _with_head(ladder.breakdown())),
}
"""Regions, those that are made fast first."""


def kept(name: str) -> list[str]:
    """The lines of a region as they stand in its page."""
    found = re.search(_REGION.format(name), _text(REGIONS[name].page), re.DOTALL)
    assert found is not None, name
    return found.group(0).splitlines()[1:-1]


def _text(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def main(regions: Sequence[str]) -> None:
    """Write some regions, all without any, and where they come from."""
    for name in regions or REGIONS:
        region = REGIONS[name]
        lines = "\n".join(region.lines())
        pattern = re.compile(_REGION.format(name), re.DOTALL)
        page = pattern.sub(lambda found, made=lines: f"{found[1]}{made}\n{found[2]}", _text(region.page))
        write_text(DOCS / region.page, page)
    provenance.mark(tuple(regions or REGIONS))


if __name__ == "__main__":
    main(sys.argv[1:])
