"""`tilec report`: plans of many combinations side by side, without running any; design studies; plans as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilec.cli.completion import devices, recipes
from tilec.cli.console import Console
from tilec.cli.options import AsJson, Workers
from tilec.cli.shape_flags import parse_shapes
from tilec.cli.tables import Format, table
from tilec.errors import ConfigError, TilecError, UsageError

if TYPE_CHECKING:
    from tilec.spec.located import Located


_NAMES = ("model", "sizes", "device", "fusion")
"""Headings of columns that contain words."""


class IncompleteSweep(TilecError):
    """Some combinations cannot be planned."""


def report(
    console: Console,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL|PLAN...", help="Names of the zoo or ONNX files; with -o one plan or two."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE.html|-", help="Write plans as one page: 2-plan.json, its folder."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="NAME|FILE",
            help="Recipe of kind sweep.",
            autocompletion=recipes,
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device", metavar="NAME|FILE", help="May be repeated. [host; of a plan its own]", autocompletion=devices
        ),
    ] = None,
    fusion: Annotated[
        list[str] | None, typer.Option("--fusion", metavar="HOW", help="May be repeated. [every way to fuse]")
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape",
            metavar="SYMBOL=SIZE[,...]",
            help="May be repeated; a symbol may have several sizes; with -o the sizes that plans are shown at.",
        ),
    ] = None,
    bounds: Annotated[bool, typer.Option("--bounds", help="Compare traffic with the least known.")] = False,
    form: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TABLE,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png|svg", help="Draw a design study (needs matplotlib).")
    ] = None,
    workers: Workers = None,
    json: AsJson = False,
) -> None:
    """Plan every combination of models, sizes, devices and ways to fuse, and compare the plans; nothing runs.

    \b
    tilec report model.tilec/ -o report.html
    tilec report old.tilec/ new.tilec/ -o report.html
    tilec report model.tilec/ --shape seq=384 -o report.html
    tilec report bert-base --device a100
    tilec report bert-base resnet-50 --device a100 --device ipu-mk2 --shape batch=1,batch=16
    tilec report --recipe sensitivity --format csv > rows.csv
    tilec report --recipe studies/gpt3-area --plot area.svg
    tilec report --recipe sensitivity --workers dask://10.0.0.1:8786

    A row tells groups, different fused patterns and those with two or more reductions, nodes of the largest group,
    launches, bytes between groups, traffic of the lowest level, also in whole transactions, predicted time, and
    energy where a device file tells any; a line below counts the patterns of several models. A recipe with
    workloads is a design study: their least data movement on many buffers, memories, devices or dies, and how fast
    that can be at best.

    With -o it takes plans instead and writes one page that a browser shows without a network: groups as a graph that
    open into tiles and tile programs, traffic and time by level, roofline, bounds, refusals, verification.
    """
    if output is not None:
        from tilec.cli.report_page import write_page

        others = {"--recipe": recipe, "--workers": workers, "--fusion": fusion, "--bounds": bounds, "--plot": plot}
        others |= {"--json": json, "--format": form is not Format.TABLE}
        left = [name for name, given in others.items() if given]
        write_page(console, models or [], output, device or [], left, parse_shapes(shape or ()))
        return
    from tilec.pipeline.sweep import sweep
    from tilec.pipeline.workers import workers_of
    from tilec.report.sweep import pattern_lines, sweep_cells, sweep_csv, sweep_to_json
    from tilec.spec.located import validate
    from tilec.spec.sweep import SweepRecipe

    flags = {"models": models, "devices": device, "fusion": fusion, "shapes": _sizes(shape), "bounds": bounds}
    located, given = _merged(recipe, flags)
    folder = _folder(recipe) if recipe is not None else Path()
    folders = {key: Path() if key in given else folder for key in _FILES}
    if "workloads" in located.data:
        from tilec.cli.study import study

        study(console, located, given, folders, Format.JSON if json else form, plot, workers)
        return
    if plot is not None:
        raise UsageError("only a design study is drawn", "--plot", "Give --recipe one with workloads, studies/...")
    chosen = validate(SweepRecipe, located)
    with workers_of(workers) as work, console.stage("report") as advance:
        rows = sweep(chosen, located, advance, folders, work)
    if json or form is Format.JSON:
        console.json(sweep_to_json(rows))
    else:
        console.data(sweep_csv(rows) if form is Format.CSV else table(sweep_cells(rows), _NAMES))
        for line in pattern_lines(rows):
            console.note(line)
    if failed := [row for row in rows if row.found is None]:
        messages = dict.fromkeys(f"{row.model} on {row.device}: {row.error}" for row in failed)
        raise IncompleteSweep(f"{len(failed)} of {len(rows)} combinations have no plan", hint="\n  ".join(messages))


def _folder(recipe: str) -> Path:
    """The folder of a recipe, beside which stand the files that it names."""
    from tilec.spec.resolve import packaged

    file = packaged("recipes").get(recipe, Path(recipe))
    return file.parent if isinstance(file, Path) else Path()


_FILES = ("models", "workloads", "devices")
"""Keys of a recipe that name files."""


def _sizes(texts: list[str] | None) -> dict[str, list[int]]:
    """Map from symbol to sizes, from `batch=1,batch=16,seq=128`. Raises UsageError for another form."""
    sizes: dict[str, list[int]] = {}
    for part in (part for text in texts or () for part in text.split(",")):
        for symbol, size in parse_shapes([part]).items():
            sizes.setdefault(symbol, []).append(size)
    return sizes


def _merged(recipe: str | None, flags: dict[str, Any]) -> "tuple[Located, set[str]]":
    """The recipe with the keys that flags replace, and these keys.

    Raises UsageError when there is nothing to plan and ConfigError for a recipe of another kind.
    """
    from tilec.spec.located import Located, parse_yaml
    from tilec.spec.resolve import recipe_source

    file = Located({"kind": "sweep"})
    if recipe is not None:
        source = recipe_source(recipe)
        file = parse_yaml(source.text, source.place)
        if (kind := file.data.get("kind")) != "sweep":
            found = f"expected kind 'sweep', found {kind or 'none'!r}"
            raise ConfigError(
                found, file.place(("kind",)), "`tilec report FOLDER` writes the page of a compiled model."
            )
    given = {key: value for key, value in flags.items() if value}
    if recipe is None and "models" not in given:
        raise UsageError("nothing to plan", hint="Name models of the zoo or ONNX files, or a recipe of kind sweep.")
    for name in given.get("models", ()):
        if Path(name).is_dir() or name.endswith(".json"):
            raise UsageError("this is a plan, no model", name, "Add -o report.html to see plans as a page.")
    places = {path: place for path, place in file.values.items() if not path or path[0] not in given}
    for key in given:
        places[key,] = "MODEL" if key == "models" else f"--{key.removesuffix('s')}"
    keys = {path: place for path, place in file.keys.items() if path[0] not in given}
    return Located({**file.data, **given}, keys, places, file.whole), set(given)
