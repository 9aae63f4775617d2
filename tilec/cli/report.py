"""`tilec report`: plans of many combinations side by side, without running any."""

import io
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilec.cli.console import Console
from tilec.cli.options import AsJson, parse_shapes
from tilec.errors import ConfigError, TilecError, UsageError

if TYPE_CHECKING:
    from tilec.report.sweep import Row
    from tilec.spec.located import Located


_WIDEST = 400
"""Columns where there is no terminal."""


class IncompleteSweep(TilecError):
    """Some combinations cannot be planned."""


class Format(StrEnum):
    """How the rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def report(
    console: Console,
    models: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL...", help="Names of the zoo, or ONNX files.")
    ] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", metavar="NAME|FILE", help="Recipe of kind sweep.")] = None,
    device: Annotated[
        list[str] | None, typer.Option("--device", metavar="NAME|FILE", help="May be repeated. [host]")
    ] = None,
    fusion: Annotated[
        list[str] | None, typer.Option("--fusion", metavar="HOW", help="May be repeated. [every way to fuse]")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", metavar="SYMBOL=SIZE[,...]", help="May be repeated; a symbol may have several sizes."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    json: AsJson = False,
) -> None:
    """Plan every combination of models, sizes, devices and ways to fuse, and compare the plans; nothing runs.

    \b
    tilec report bert-base --device a100
    tilec report bert-base resnet-50 --device a100 --device ipu-mk2 --shape batch=1,batch=16
    tilec report --recipe sensitivity --format csv > rows.csv

    A row tells groups, different fused patterns and those with two or more reductions, nodes of the largest group,
    launches, bytes between groups, traffic of the lowest level, also in whole transactions, and predicted time.
    """
    from tilec.pipeline.sweep import sweep
    from tilec.report.sweep import sweep_csv, sweep_to_json
    from tilec.spec.located import validate
    from tilec.spec.resolve import packaged
    from tilec.spec.sweep import SweepRecipe

    located, given = _merged(recipe, {"models": models, "devices": device, "fusion": fusion, "shapes": _sizes(shape)})
    chosen = validate(SweepRecipe, located)
    folder = Path(recipe).parent if recipe is not None and recipe not in packaged("recipes") else Path()
    with console.stage("report") as advance:
        rows = sweep(chosen, located, advance, {key: Path() if key in given else folder for key in _FILES})
    if json or form is Format.JSON:
        console.json(sweep_to_json(rows))
    else:
        console.data(sweep_csv(rows) if form is Format.CSV else _table(rows))
    if failed := [row for row in rows if row.found is None]:
        said = dict.fromkeys(f"{row.model} on {row.device}: {row.error}" for row in failed)
        raise IncompleteSweep(f"{len(failed)} of {len(rows)} combinations have no plan", hint="\n  ".join(said))


_FILES = ("models", "devices")
"""Keys of a recipe that name files."""


def _sizes(texts: list[str] | None) -> dict[str, list[int]]:
    """Symbol -> sizes of `batch=1,batch=16,seq=128`. Raises UsageError for anything else."""
    sizes: dict[str, list[int]] = {}
    for part in (part for text in texts or () for part in text.split(",")):
        for symbol, size in parse_shapes([part]).items():
            sizes.setdefault(symbol, []).append(size)
    return sizes


def _merged(recipe: str | None, flags: dict[str, Any]) -> "tuple[Located, set[str]]":
    """The recipe with the keys that flags replace, and these keys. Raises UsageError when there is nothing to plan and
    ConfigError for a recipe of another kind."""
    from tilec.spec.located import Located, parse_yaml
    from tilec.spec.resolve import recipe_source

    file = Located({"kind": "sweep"})
    if recipe is not None:
        source = recipe_source(recipe)
        file = parse_yaml(source.text, source.place)
        if (kind := file.data.get("kind")) != "sweep":
            raise ConfigError(f"expected kind 'sweep', found {kind or 'none'!r}", file.place(("kind",)))
    given = {key: value for key, value in flags.items() if value}
    if recipe is None and "models" not in given:
        raise UsageError("nothing to plan", hint="Name models of the zoo or ONNX files, or a recipe of kind sweep.")
    places = {path: place for path, place in file.values.items() if not path or path[0] not in given}
    for key in given:
        places[key,] = "MODEL" if key == "models" else f"--{key.removesuffix('s')}"
    keys = {path: place for path, place in file.keys.items() if path[0] not in given}
    return Located({**file.data, **given}, keys, places, file.whole), set(given)


def _table(rows: "Sequence[Row]") -> str:
    """Aligned columns, in the terminal's colors where there is one; names on the left, numbers on the right."""
    from rich.console import Console as RichConsole
    from rich.table import Table

    from tilec.report.sweep import sweep_cells

    head, *body = sweep_cells(rows)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    names = head.index("fusion") + 1
    for place, title in enumerate(head):
        table.add_column(title, justify="left" if place < names else "right", no_wrap=True)
    for cells in body:
        table.add_row(*cells)
    terminal, memory = sys.stdout.isatty(), io.StringIO()
    rich = RichConsole(
        file=memory, force_terminal=terminal, width=None if terminal else _WIDEST, highlight=False, markup=False
    )
    rich.print(table)
    return "\n".join(line.rstrip() for line in memory.getvalue().splitlines())
