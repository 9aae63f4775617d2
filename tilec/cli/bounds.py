"""`tilec bounds`: lower bounds on data movement of an Einsum, a workload or a model at every buffer capacity."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.bounds_options import capacities, device_of, extents, levels_of, widths
from tilec.cli.completion import devices
from tilec.cli.console import Console
from tilec.cli.options import AsJson, BoundShapes
from tilec.cli.page import Page
from tilec.cli.shape_flags import parse_shapes
from tilec.errors import UsageError

if TYPE_CHECKING:
    from tilec.analysis.bounds.rows import At
    from tilec.analysis.bounds.subject import Subject
    from tilec.bounds.einsum.mapspaces import Kind


class Mapspace(StrEnum):
    """The mapspaces that are searched."""

    ORO = "oro"
    ORO_PLUS = "oro+"
    ALL = "all"


def bounds(
    console: Console,
    source: Annotated[
        str,
        typer.Argument(
            metavar="EINSUM|WORKLOAD|MODEL|GRAPH",
            help="Einsum text; recipe of kind bounds; ONNX file or name of the zoo; 1-graph.json, its folder, or -.",
        ),
    ],
    dims: Annotated[
        list[str] | None,
        typer.Option("--dims", metavar="NAME=EXTENT[,...]", help="Extents of an Einsum's iterators; may be repeated."),
    ] = None,
    dtype: Annotated[
        list[str] | None,
        typer.Option("--dtype", metavar="TYPE|TENSOR=TYPE[,...]", help="Element types of an Einsum's tensors. [f32]"),
    ] = None,
    bits: Annotated[
        list[str] | None, typer.Option("--bits", metavar="N|TENSOR=N[,...]", help="The same in bits.")
    ] = None,
    shape: BoundShapes = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option("--capacity", metavar="SIZE", help="Buffer such as 40MiB or 40MB; may be repeated."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="NAME|FILE",
            help="Bound every level: one instance and all above it.",
            autocompletion=devices,
        ),
    ] = None,
    units: Annotated[
        int, typer.Option("--units", min=1, help="Bound tasks for so many units with a --capacity each, too.")
    ] = 1,
    mapspace: Annotated[
        Mapspace | None, typer.Option("--mapspace", help="What is searched. [all; of a workload what it says]")
    ] = None,
    csv: Annotated[str | None, typer.Option("--csv", metavar="FILE|-", help="Write rows, or whole curves.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png|svg", help="Draw the curves (needs matplotlib).")
    ] = None,
    json: AsJson = False,
) -> None:
    """Bound the data movement between a buffer and its backing store, at every capacity.

    \b
    tilec bounds "C[m,n] = sum(k, A[m,k]*B[k,n])" --dims m=4096,n=4096,k=4096 --capacity 40MiB
    tilec bounds "C[m,n] = sum(k, A[m,k]*B[k,n])" --dims m=4096,n=4096,k=4096 --dtype A=f16,B=i8,C=f32 --device a100
    tilec bounds bounds/gpt3 --plot gpt3.svg
    tilec bounds model.onnx --shape batch=1 --device a100 --csv rows.csv
    tilec bounds model.tilec/ --capacity 1MiB --capacity 40MiB --json

    oro is the published curve (tiles divide their extents), oro+ searches more; both are attained by the mapping
    beside them. parallel is oro+ in tasks for all units of a level, or --units, which have a buffer each: a single
    buffer lets one unit do everything. Sizes that --shape does not bind are those that a plan would be made for. lb
    is what nothing stays below. Of a model there are every distinct contraction and chain, and the whole graph,
    whose best known traffic is no bound. A level of a device is bounded at the capacity of one instance and
    everything above it; the levels' bounds are not attained together. Without --capacity and --device CSV and JSON
    hold whole curves.
    """
    if json and csv == "-":
        raise UsageError("--json and --csv - both write to standard output", hint="Give --csv a file.")
    target = device_of(device)
    if units > 1 and not capacity:
        raise UsageError("--units needs the capacity of a unit", hint="Add --capacity, or name a --device.")
    ats = [*capacities(capacity or (), units), *levels_of(target)]
    if plot is not None:
        from tilec.report.bounds.picture import require_drawable

        require_drawable(plot)
    if ("[" in source or "=" in source) and not os.path.exists(source):
        _refuse("an Einsum", "Use --dims.", {"--shape": shape})
        bounded = _einsum(source, extents(dims or ()), widths(dtype, bits), _kinds(mapspace))
    else:
        _refuse("what is no Einsum", "Leave it out.", {"--dims": dims, "--dtype": dtype, "--bits": bits})
        if source.endswith((".yaml", ".yml")) or source.startswith(("bounds/", "studies/")):
            _refuse("a workload", "Its sizes are in the recipe.", {"--shape": shape})
            bounded = _workload(source, mapspace)
        else:
            bounded = _model(console, source, parse_shapes(shape or ()), _kinds(mapspace), ats)
    if csv is not None:
        _write_csv(console, csv, bounded.subjects, ats)
    if json:
        from tilec.report.bounds.forms import bounds_to_json

        console.json(bounds_to_json(bounded.subjects, ats))
    elif csv != "-":
        console.data(_text(bounded, ats))
    if plot is not None:
        from tilec.report.bounds.panels import panels
        from tilec.report.bounds.picture import draw

        draw(panels(bounded.drawn or bounded.subjects, target), bounded.title, plot)
        console.note(f"plot: {plot}")


@dataclass(frozen=True)
class _Bounded:
    """The subjects, the title of a picture, default capacities, and the subjects to draw if not all."""

    subjects: "Sequence[Subject]"
    title: str
    usual: "Sequence[At]" = ()
    drawn: "Sequence[Subject]" = ()


def _refuse(what: str, hint: str, options: dict[str, list[str] | None]) -> None:
    """Raise UsageError for an option that does not apply to the source."""
    for option, given in options.items():
        if given:
            raise UsageError(f"{what} takes no {option}", option, hint)


def _kinds(asked: Mapspace | None) -> "tuple[Kind, ...]":
    every: tuple[Kind, ...] = ("oro", "oro+")
    return tuple(kind for kind in every if asked in (None, Mapspace.ALL, kind))


def _einsum(text: str, sizes: dict[str, int], width: int | Mapping[str, int], kinds: "Sequence[Kind]") -> _Bounded:
    from tilec.pipeline.bounds import einsum_subject

    subject = einsum_subject(text, sizes, width, kinds)
    return _Bounded([subject], f"{subject.text}, {' '.join(f'{dim}={size}' for dim, size in subject.sizes.items())}")


def _workload(name: str, mapspace: Mapspace | None) -> _Bounded:
    from tilec.analysis.bounds.rows import at_bytes
    from tilec.pipeline.bounds import workload, workload_subject

    recipe = workload(name)
    kinds = (recipe.mapspace,) if mapspace is None else _kinds(mapspace)
    subject = workload_subject(Path(name).stem, recipe, kinds)
    return _Bounded([subject], subject.name, [at_bytes(size) for size in recipe.capacities])


def _model(
    console: Console, source: str, shapes: dict[str, int], kinds: "Sequence[Kind]", ats: "Sequence[At]"
) -> _Bounded:
    from tilec.analysis.bounds.rows import some_capacities
    from tilec.ir.sizes import sizes_text
    from tilec.pipeline.bounds import at_usual_sizes, graph_subjects, read_graph

    graph, sizes = at_usual_sizes(read_graph(source, shapes, console))
    if sizes:
        console.note(f"bounds at {sizes_text(sizes)}; --shape names other sizes")
    usual = some_capacities()
    with console.stage("bounds") as advance:
        subjects = graph_subjects(graph, kinds, [at.capacity for at in ats or usual], advance)
    return _Bounded(subjects, graph.name, usual, drawn=subjects[-1:])


def _write_csv(console: Console, name: str, subjects: "Sequence[Subject]", ats: "Sequence[At]") -> None:
    from tilec.artifact import write_text
    from tilec.report.bounds.forms import bounds_csv

    text = bounds_csv(subjects, ats)
    if name == "-":
        console.data(text)
    else:
        write_text(Path(name), text)
        console.note(f"csv: {name}")


def _text(bounded: _Bounded, ats: "Sequence[At]") -> str:
    """A table per subject, in the terminal's width where there is one, then the meanings of the mapspaces."""
    from tilec.analysis.bounds.rows import usual_capacities
    from tilec.report.bounds.table import HEADS, RIGHT, cells, footer, heading

    page = Page.of_stdout()
    lines: list[str] = []
    for subject in bounded.subjects:
        first, *more = heading(subject)
        rows = cells(subject, ats or bounded.usual or usual_capacities(subject))
        lines += [page.bold(first), *more, *page.columns(HEADS, rows, RIGHT), ""]
    return "\n".join([*lines, *footer(bounded.subjects, ats)])
