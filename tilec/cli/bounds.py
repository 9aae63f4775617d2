"""`tilec bounds`: the least data movement of an Einsum, a chain, a model at every buffer capacity."""

import io
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson, Shapes
from tilec.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tilec.report.bounds.rows import At
    from tilec.report.bounds.subject import Subject
    from tilec.spec.device import DeviceSpec

_WIDEST = 400
"""Columns where there is no terminal."""


class Mapspace(StrEnum):
    """Which mappings are searched."""

    ORO = "oro"
    ORO_PLUS = "oro+"
    ALL = "all"


def bounds(
    console: Console,
    source: Annotated[
        str, typer.Argument(metavar="EINSUM|WORKLOAD|MODEL|GRAPH", help="Einsum text, YAML, ONNX file, 1-graph.json.")
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
        list[str] | None,
        typer.Option("--bits", metavar="N|TENSOR=N[,...]", help="The same in bits."),
    ] = None,
    shape: Shapes = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option("--capacity", metavar="SIZE", help="Buffer such as 40MiB or 40MB; may be repeated."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME|FILE", help="Bound every level: one instance and all above it."),
    ] = None,
    mapspace: Annotated[Mapspace, typer.Option("--mapspace", help="Which mappings are searched.")] = Mapspace.ALL,
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
    tilec bounds model.onnx --device a100 --csv rows.csv
    tilec bounds model.tilec/ --capacity 1MiB --capacity 40MiB --json
    tilec bounds bounds/gemm-4k --plot slope.svg

    oro is the published curve (tiles divide their extents), oro+ lets tiles be any size, both are attained by the
    mapping beside them; lb is what nothing stays below. A level of a device is bounded at the capacity of one
    instance and everything above it; the levels' bounds are not attained together. Without --capacity and --device
    CSV and JSON hold whole curves.
    """
    from tilec.report.bounds.forms import bounds_csv, bounds_to_json
    from tilec.report.bounds.panels import panels
    from tilec.report.bounds.picture import draw, require_drawable

    if json and csv == "-":
        raise UsageError("--json and --csv - both write to standard output", hint="Give --csv a file.")
    target = _device(device)
    ats = [*_capacities(capacity or ()), *(_levels(target) if target else ())]
    if plot is not None:
        require_drawable(plot)
    subjects = _subjects(source, dims, dtype, bits, shape, mapspace)
    if csv is not None:
        _write(console, csv, bounds_csv(subjects, ats))
    if json:
        console.json(bounds_to_json(subjects, ats))
    elif csv != "-":
        console.data(_text(subjects, ats))
    if plot is not None:
        draw(panels(subjects, target), _title(source, subjects), plot)
        console.note(f"plot: {plot}")


def _title(source: str, subjects: "Sequence[Subject]") -> str:
    """What a picture shows, in one line."""
    (first, *more) = subjects
    return source if more else f"{first.text}, {' '.join(f'{name}={size}' for name, size in first.sizes.items())}"


def _write(console: Console, name: str, text: str) -> None:
    from tilec.artifact import write_text

    if name == "-":
        console.data(text)
    else:
        write_text(Path(name), text)
        console.note(f"csv: {name}")


def _capacities(texts: Iterable[str]) -> "list[At]":
    """Capacities in bytes. Raises UsageError for what has no unit or another one."""
    from tilec.report.bounds.rows import at_capacity

    found = []
    for text in (part for given in texts for part in given.split(",")):
        try:
            found.append(at_capacity(text))
        except ValueError as error:
            raise UsageError(str(error), "--capacity") from None
    return found


def _device(name: str | None) -> "DeviceSpec | None":
    """The device of a name or file. Raises UsageError and ConfigError."""
    if name is None:
        return None
    from tilec.spec.resolve import resolve_device

    return resolve_device(name)


def _levels(device: "DeviceSpec") -> "list[At]":
    """The capacities of a device's levels."""
    from tilec.bounds.levels import level_capacities
    from tilec.report.bounds.rows import at_levels

    return at_levels(level_capacities(device))


def _subjects(
    source: str,
    dims: list[str] | None,
    dtype: list[str] | None,
    bits: list[str] | None,
    shape: list[str] | None,
    mapspace: Mapspace,
) -> "list[Subject]":
    """What `source` names. Raises UsageError for options that do not go with it."""
    from tilec.pipeline.bounds import einsum_subject

    if "[" in source or "=" in source:
        _refuse("--shape", shape, "an Einsum", "Use --dims.")
        return [einsum_subject(source, _extents(dims or ()), _widths(dtype, bits), mapspace.value)]
    raise UsageError(f"there is no {source!r}", hint="Give an Einsum, a YAML workload, an ONNX model or a graph.")


def _refuse(option: str, given: object, what: str, hint: str) -> None:
    if given:
        raise UsageError(f"{what} takes no {option}", option, hint)


def _pairs(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """NAME -> VALUE of `a=1,b=2`, and "" -> VALUE of a value alone. Raises UsageError for a name given twice."""
    found: dict[str, str] = {}
    for part in (part for text in texts for part in text.split(",")):
        match = re.fullmatch(r"\s*(?:([A-Za-z_]\w*)\s*=)?\s*(\w+)\s*", part)
        if match is None:
            raise UsageError(f"{part!r} is not understood", option, f"Write it like {option} {example}.")
        name = match[1] or ""
        if found.setdefault(name, match[2]) != match[2]:
            raise UsageError(f"{name or 'the value'} is given twice: {found[name]} and {match[2]}", option)
    return found


def _number(option: str, text: str, example: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise UsageError(f"{text!r} is not a whole number", option, f"Write it like {option} {example}.")
    return int(text)


def _extents(texts: Iterable[str]) -> dict[str, int]:
    """Iterator -> extent."""
    example = "m=4096,n=4096,k=4096"
    pairs = _pairs("--dims", texts, example)
    if "" in pairs:
        raise UsageError(f"{pairs['']!r} names no iterator", "--dims", f"Write it like --dims {example}.")
    return {name: _number("--dims", text, example) for name, text in pairs.items()}


def _widths(dtype: list[str] | None, bits: list[str] | None) -> int | Mapping[str, int]:
    """Bits of an element, of all tensors or by name."""
    if dtype and bits:
        raise UsageError("--dtype and --bits both say how large elements are", hint="Leave one of them out.")
    if bits:
        pairs = _pairs("--bits", bits, "16 or A=16,B=4,C=32")
        widths = {name: _number("--bits", text, "16 or A=16,B=4,C=32") for name, text in pairs.items()}
    else:
        widths = {name: _bits_of(text) for name, text in _pairs("--dtype", dtype or ["f32"], "f16").items()}
    return widths[""] if set(widths) == {""} else widths


def _bits_of(ttype: str) -> int:
    from tilec.ir.types import TTYPES

    if ttype in TTYPES:
        return TTYPES[ttype].bits
    near = did_you_mean(ttype, TTYPES)
    raise UsageError(
        f"no element type is called {ttype!r}", "--dtype",
        f"Did you mean {near!r}?" if near else f"Known: {', '.join(TTYPES)}; or give --bits.",
    )  # fmt: skip


def _text(subjects: "Sequence[Subject]", ats: "Sequence[At]") -> str:
    """A table for each subject, in the terminal's width where there is one, then what the mapspaces hold."""
    from rich.console import Console as RichConsole
    from rich.table import Table

    from tilec.report.bounds.rows import usual_capacities
    from tilec.report.bounds.table import HEADS, RIGHT, cells, footer, heading

    terminal, memory = sys.stdout.isatty(), io.StringIO()
    rich = RichConsole(
        file=memory, force_terminal=terminal, width=None if terminal else _WIDEST, highlight=False, markup=False
    )
    for subject in subjects:
        first, *more = heading(subject)
        rich.print(first, style="bold")
        rich.print(*more, sep="\n")
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for head in HEADS:
            table.add_column(head, justify="right" if head in RIGHT else "left", no_wrap=head != HEADS[-1])
        for line in cells(subject, ats or usual_capacities(subject)):
            table.add_row(*line)
        rich.print(table)
        rich.print()
    rich.print(*footer(subjects, ats), sep="\n")
    return "\n".join(line.rstrip() for line in memory.getvalue().splitlines())
