"""`tilec inspect`: the facts of a model or an artifact, for people and as JSON."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson, PlanShapes, Scenario
from tilec.cli.shape_flags import parse_shapes
from tilec.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

_WIDTH = 120
"""Width in characters where there is no terminal."""


def inspect(
    console: Console,
    file: Annotated[
        Path, typer.Argument(metavar="FILE|FOLDER", help="ONNX file, artifact, or folder of a compiled model.")
    ],
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="GROUP|NODE-GLOB", help="Only these groups and nodes; may be repeated."),
    ] = None,
    shape: PlanShapes = None,
    scenario: Scenario = None,
    json: AsJson = False,
) -> None:
    """Tell what a model or an artifact is: inputs, operators, weights, groups, placement.

    \b
    tilec inspect model.onnx
    tilec inspect model.tilec/
    tilec inspect model.tilec/2-plan.json --json
    tilec inspect model.tilec/2-plan.json --select 'encoder_layer_0_*'
    tilec inspect model.onnx --select '*/MatMul*'
    tilec inspect model.tilec/2-plan.json --shape seq=384
    tilec inspect decoder.tilec/2-plan.json --scenario decode

    --select takes names with * and ?: of groups, tensors, nodes of the model and operators. Figures of a plan with
    symbols are for the sizes that it is made for, or for those of --shape; --scenario adds those of one scenario by
    length.
    """
    from tilec.cli.facts import facts_of

    sizes = parse_shapes(shape or ())
    if select:
        from tilec.cli.selected import selected

        chosen = selected(file, select, sizes)
        if json:
            console.json(chosen if file.is_dir() else next({"kind": k, "selected": v} for k, v in chosen.items()))
        else:
            shown = {f"{kind}: {each['name']}": each for kind, rows in chosen.items() for each in rows}
            console.data(_text({name: {k: v for k, v in each.items() if k != "name"} for name, each in shown.items()}))
        return
    facts_by_kind = facts_of(file, sizes, scenario)
    if (sizes or scenario) and "plan" not in facts_by_kind:
        flag = "--shape" if sizes else "--scenario"
        raise UsageError(f"{flag} looks at a plan, and this is none", str(file), "Name 2-plan.json or its folder.")
    if json:
        console.json(
            facts_by_kind if file.is_dir() else next({"kind": kind, **facts} for kind, facts in facts_by_kind.items())
        )
    else:
        console.data(_text(facts_by_kind))


def _text(facts_by_kind: Mapping[str, Mapping[str, Any]]) -> str:
    """All facts as text, in the terminal's colors and width where there is one."""
    import sys

    from rich.console import Console as RichConsole

    terminal = sys.stdout.isatty()
    memory = io.StringIO()
    rich = RichConsole(
        file=memory, force_terminal=terminal, width=None if terminal else _WIDTH, highlight=False, markup=False
    )
    for kind, facts in facts_by_kind.items():
        rich.print(kind, style="bold")
        _print(rich, facts)
    return "\n".join(line.rstrip() for line in memory.getvalue().splitlines())


def _print(rich: "RichConsole", facts: Mapping[str, Any]) -> None:
    """Facts of one object: single words first, lists below; empty values are left out."""
    from rich.padding import Padding
    from rich.table import Table

    for key, value in facts.items():
        if _nothing(value):
            continue
        name = _label(key)
        rows = _rows(value)
        if rows is None:
            table = Table.grid(padding=(0, 2))
            table.add_column(width=24)
            table.add_column(overflow="fold")
            table.add_row(name, _word(key, value))
            rich.print(Padding(table, (0, 0, 0, 2)))
            continue
        rich.print(f"  {name}")
        table = Table.grid(padding=(0, 2))
        for _ in rows[0]:
            table.add_column(overflow="fold")
        for row in rows:
            table.add_row(*row)
        rich.print(Padding(table, (0, 0, 0, 4)))


def _nothing(value: Any) -> bool:
    return value is None or value is False or value == "" or (isinstance(value, Mapping | list) and not value)


def _rows(value: Any) -> list[list[str]] | None:
    """A list of objects, or an object, as rows of a table; None for a value that fits on a line."""
    if isinstance(value, Mapping):
        return [[str(key), _word(str(key), inner)] for key, inner in value.items() if not _nothing(inner)]
    if _is_list(value) and value and isinstance(value[0], Mapping):
        return [[_word(key, inner) for key, inner in row.items()] for row in value]
    return None


def _word(key: str, value: Any) -> str:
    """One fact in one line; bytes with a unit."""
    from tilec.report.formatting import bytes_text, energy_text, time_text

    if key.endswith("bytes") and isinstance(value, int):
        return bytes_text(value)
    if key.endswith("picoseconds") and isinstance(value, int):
        return time_text(value)
    if key.endswith("femtojoules") and isinstance(value, int):
        return energy_text(value)
    if key == "made_for":
        return f"planned at {value}"
    if key == "likely" and value:
        return f"likely {_listed(map(str, value))}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if key in ("parameters", "nodes", "transactions") else str(value)
    if key == "shape" and _is_list(value):
        return f"[{', '.join('?' if extent is None else str(extent) for extent in value)}]"
    if isinstance(value, Mapping):
        return _listed(f"{_label(name).removesuffix(' bytes')} {_word(name, inner)}" for name, inner in value.items())
    if _is_list(value):
        return _listed(_word("", inner) for inner in value)
    return "?" if value is None else str(value)


def _label(key: str) -> str:
    """The label of a fact whose value is printed with its unit."""
    return "size" if key == "bytes" else key.removesuffix("_picoseconds").removesuffix("_femtojoules").replace("_", " ")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
