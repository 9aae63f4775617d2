"""Options shared by several commands, and the recipe and device that follow from them."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tilec.cli.completion import devices, recipes, sizes
from tilec.cli.console import Console
from tilec.cli.shape_flags import SizeRange, parse_sizes
from tilec.errors import ArtifactError
from tilec.pipeline import DEVICE_FILE, Job, StageInput
from tilec.pipeline.request import Flags, device_job, plain_job

if TYPE_CHECKING:
    from tilec.spec.device import DeviceSpec

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME|FILE",
        help="A name of `tilec device list`, a file, or host: this machine; other values in brackets: a100[KEY=VALUE].",
        autocompletion=devices,
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option("--recipe", metavar="NAME|FILE", help="Recipe with the options below.", autocompletion=recipes),
]
ModelDevice = Annotated[
    str | None,
    typer.Option(
        "--device", metavar="NAME|FILE", help="What MODEL is compiled for (default: host).", autocompletion=devices
    ),
]
ModelRecipe = Annotated[
    str | None,
    typer.Option("--recipe", metavar="NAME|FILE", help="How MODEL is compiled.", autocompletion=recipes),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="SYMBOL=SIZE|LOW..HIGH[/DIVISOR][,...]",
        help="Bind symbolic sizes, or limit them: seq=1..512, seq=8..512/8; may be repeated.",
        autocompletion=sizes,
    ),
]
BoundShapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="SYMBOL=SIZE[,...]",
        help="Bind symbolic sizes; may be repeated.",
        autocompletion=sizes,
    ),
]
PlanShapes = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="SYMBOL=SIZE[,...]", help="Look at a plan with symbols at these sizes."),
]
Scenario = Annotated[
    str | None,
    typer.Option("--scenario", metavar="NAME", help="Sizes that occur together: decode, or a name of the recipe."),
]
Bind = Annotated[
    list[str] | None,
    typer.Option(
        "--bind",
        metavar="SYMBOL=SIZE|LOW..HIGH[/DIVISOR][,...]",
        help="Compile MODEL for these sizes only; may be repeated.",
        autocompletion=sizes,
    ),
]
ShapesFrom = Annotated[
    Path | None,
    typer.Option("--shapes-from", metavar="FILE", help="Sizes that sessions counted (sizes.json): the likely ones."),
]
AllowUnverified = Annotated[
    bool, typer.Option("--allow-unverified", help="Exit with 0 though nothing could be verified (else 7).")
]
Strict = Annotated[bool, typer.Option("--strict", help="Operators that fall back are an error (exit 5).")]
MOST_THREADS = 1 << 12
"""Threads that may be asked for; more than any machine has cores."""

Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, max=MOST_THREADS, help="Worker threads (default: cores of the device)."),
]
Model = Annotated[
    Path | None, typer.Option("--model", metavar="FILE", help="Where the model is, if not beside the artifacts.")
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Measure candidates of every group on this machine; keeps a tuning record.")
]
Record = Annotated[
    str | None,
    typer.Option("--record", metavar="FILE", help="Tuning record (with --profile: tuning.json beside the plan)."),
]
Budget = Annotated[int | None, typer.Option("--budget", min=1, help="Candidates of a group to look at (default: 20).")]
Bounds = Annotated[
    bool | None,
    typer.Option("--bounds/--no-bounds", help="Find the best traffic known of every group, which takes some time."),
]
Effort = Annotated[
    Literal["quick", "full"] | None,
    typer.Option("--effort", help="quick: a plan by rules, in a fraction of the time (default: full)."),
]
ProfileCompile = Annotated[
    Path | None,
    typer.Option(
        "--profile-compile",
        metavar="FILE",
        help="Write the seconds of every stage and step, as JSON that Perfetto opens, too.",
    ),
]
PrintBetweenPasses = Annotated[
    bool, typer.Option("--print-between-passes", help="Say on stderr what every pass alters; runs though it is fresh.")
]
Workers = Annotated[
    str | None,
    typer.Option("--workers", metavar="N|dask://HOST:PORT", help="Processes here, or a Dask cluster (tilec[cluster])."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
PrintRecipe = Annotated[
    bool, typer.Option("--print-recipe", help="Print the recipe in effect, with the origin of each value, and stop.")
]


def flags(
    *,
    device: str | None = None,
    shapes: Iterable[str] | None = None,
    likely: Mapping[str, list[int]] | None = None,
    strict: bool = False,
    allow_unverified: bool = False,
    threads: int | None = None,
    profile: bool = False,
    record: str | None = None,
    budget: int | None = None,
    bounds: bool | None = None,
    effort: str | None = None,
    watched: str | None = None,
) -> dict[str, tuple[str, Any]]:
    """Recipe keys set by the shared flags; `likely` maps symbols to sizes from a file, `watched` is the stage that
    prints between passes.

    Raises UsageError for a malformed --shape.
    """
    given: dict[str, tuple[str, Any]] = {}
    if device is not None:
        given["device"] = ("--device", device)
    for symbol, size in parse_sizes(shapes or ()).items():
        given[f"shapes.{symbol}.value"] = ("--shape", None if isinstance(size, SizeRange) else size)
        if isinstance(size, SizeRange):
            given[f"shapes.{symbol}.range"] = ("--shape", [size.low, size.high])
            if size.divisor is not None:
                given[f"shapes.{symbol}.divisor"] = ("--shape", size.divisor)
    for symbol, frequent in (likely or {}).items():
        if given.get(f"shapes.{symbol}.value", ("", None))[1] is None:
            given[f"shapes.{symbol}.likely"] = ("--shapes-from", frequent)
    if allow_unverified:
        given["verify.allow_unverified"] = ("--allow-unverified", True)
    if strict:
        given["fallback"] = ("--strict", "refuse")
    if threads is not None:
        given["codegen.threads"] = ("--threads", threads)
    if profile:
        given["schedule.profile"] = ("--profile", True)
    if record is not None:
        given["schedule.record"] = ("--record", record)
    if budget is not None:
        given["schedule.budget"] = ("--budget", budget)
    if bounds is not None:
        given["schedule.bounds"] = ("--bounds" if bounds else "--no-bounds", bounds)
    if effort is not None:
        given["schedule.effort"] = ("--effort", effort)
    if watched is not None:
        given[f"{watched}.print_between_passes"] = ("--print-between-passes", True)
    return given


def job_without_device(console: Console, recipe: str | None, given: Flags, model: Path | None = None) -> Job:
    """The job of a stage that needs no device."""
    from tilec.spec.effective import recipe_without_device

    return replace(plain_job(recipe_without_device(recipe, given, os.environ), given, console), model=model)


def job_on_device(
    console: Console, recipe: str | None, given: Flags, folder: Path, show: bool = False, model: Path | None = None
) -> Job | None:
    """The job of stages that need the device; `host` is the device.yaml of `folder` where there is one, unless this
    machine was measured later, which is told.

    With `show` the recipe in effect is printed instead and None returned.
    """
    from tilec.artifact import cache_folder
    from tilec.spec.effective import effective_recipe
    from tilec.spec.resolve import resolve_device
    from tilec.spec.source import HOST

    beside = folder / DEVICE_FILE
    effective = effective_recipe(recipe, given, os.environ, host_file=beside)
    if show:
        console.data(effective.text())
        return None
    if effective.device_source.place == HOST and beside.is_file():
        earlier = resolve_device(str(beside))
        if earlier.name == HOST and earlier.digest() != effective.device.digest():
            console.note(f"device: this machine was measured again since {beside} was written; the new figures count")
    return replace(device_job(effective, given, console, cache_folder()), model=model)


def device_of(source: StageInput) -> str:
    """The device that an artifact was planned for: device.yaml beside it, else its name.

    Raises ArtifactError when neither matches.
    """
    from tilec.spec.resolve import packaged, resolve_device

    assert source.artifact is not None
    wanted, name = source.artifact.inputs.get("device"), str(source.body.get("device", ""))
    beside = source.folder / DEVICE_FILE
    names = [str(beside)] * beside.is_file() + [name] * (name in packaged("devices"))
    for candidate in names:
        if resolve_device(candidate).digest() == wanted:
            return candidate
    raise ArtifactError(f"the file of its device {name!r} is not here", source.place, "Name it with --device FILE.")


def known_device(source: StageInput) -> "DeviceSpec | None":
    """The device that an artifact was planned for; None where its file is not available."""
    from tilec.spec.resolve import resolve_device

    try:
        return resolve_device(device_of(source))
    except ArtifactError:
        return None


def target_of(output: Path | None, default: Path, file: str) -> Path | None:
    """The file that -o names: itself when it ends in .json, else `file` in that folder; None for standard output."""
    if output is None:
        return default / file
    if str(output) == "-":
        return None
    return output if output.suffix == ".json" else output / file
