"""`tilec device`: list the devices, show one, measure this machine, translate files of other tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilec.artifact import write_text
from tilec.cli.completion import devices
from tilec.cli.console import Console
from tilec.cli.page import Page
from tilec.cli.verb import EXIT_CODES, verb
from tilec.errors import UsageError, unreadable

if TYPE_CHECKING:
    from tilec.spec.device import DeviceSpec

app = typer.Typer(no_args_is_help=True, help="Devices: list them, show one, measure this machine, translate files.")

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command("list", epilog=EXIT_CODES)
@verb
def list_(console: Console, json: Json = False) -> None:
    """List the devices that come with tilec, and this machine.

    \b
    tilec device list
    tilec device list --json

    The peak is that of the fastest compute unit. Models run on devices with code; for the others there are plans and
    tile programs, which the tile machine executes.
    """
    from tilec.spec.resolve import packaged, resolve_device
    from tilec.spec.source import HOST

    entries = {name: _entry(resolve_device(name)) for name in packaged("devices")}
    entries[HOST] = _host()
    if json:
        console.json({"devices": entries})
        return
    rows = [["name", "kind", "levels", "peak", "runs", "description"]]
    for name, entry in entries.items():
        peak = f"{entry['peak']} {entry['peak_types']}" if entry["peak"] else ""
        levels = " ".join(entry["levels"])
        rows.append([name, entry["kind"], levels, peak, "yes" if entry["code"] else "plan only", entry["description"]])
    console.data(Page.of_stdout().rows(rows))


def _entry(device: "DeviceSpec") -> dict[str, Any]:
    """The entry of a device in the list; `code` means that kernels are generated for it, not only plans."""
    from tilec.codegen.backend import backend_of
    from tilec.ir.types import is_float
    from tilec.spec.units import RATE

    unit = max(device.compute, key=lambda unit: unit.rate)
    peak = RATE.format(unit.rate)
    return {
        "code": backend_of(device) is not None,
        "description": device.description,
        "kind": device.kind,
        "levels": list(device.level_names),
        "peak": peak if is_float(unit.inputs[0]) else peak.replace("FLOP", "OP"),
        "peak_types": " x ".join(dict.fromkeys(unit.inputs)),
    }


def _host() -> dict[str, Any]:
    """The entry of this machine if it was measured; a list measures nothing."""
    from tilec.spec.probe import known_text
    from tilec.spec.resolve import parse_device
    from tilec.spec.source import Source

    text = known_text()
    if text is not None:
        entry = _entry(parse_device(Source(text, "host")))
        return {**entry, "description": f"this machine: {entry['description']}"}
    later = "this machine, measured when it is first used"
    return {"code": True, "description": later, "kind": "cpu", "levels": [], "peak": "", "peak_types": ""}


@app.command(epilog=EXIT_CODES)
@verb
def show(
    console: Console,
    device: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A device, or host for this machine.", autocompletion=devices)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Another value of a key; may be repeated."),
    ] = None,
    json: Json = False,
) -> None:
    """Print a device file, checked; with --json what it says.

    \b
    tilec device show a100
    tilec device show host > device.yaml
    tilec device show a100 --set levels.smem.capacity=100KiB > smaller.yaml

    A path joins keys by dots; levels, compute units and other entries of lists go by their names.
    """
    from tilec.spec.override import with_values
    from tilec.spec.resolve import device_source, parse_device

    source = device_source(device)
    if settings:
        source = with_values(source, settings)
    spec = parse_device(source)
    if json:
        shown: dict[str, Any] = spec.model_dump(mode="json")
        console.json({**shown, "sha256": spec.digest()})
    else:
        console.data(source.text)


@app.command(epilog=EXIT_CODES)
@verb
def probe(
    console: Console,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the device file here, not to stdout.")
    ] = None,
) -> None:
    """Measure this machine now and remember it as device host.

    \b
    tilec device probe
    tilec device probe -o device.yaml
    """
    from tilec.spec.probe import probed_text

    with console.stage("probe"):
        text = probed_text(again=True)
    if output is None or str(output) == "-":
        console.data(text)
    else:
        write_text(output, text)
        console.note(f"device: {output}")


@app.command("import", epilog=EXIT_CODES)
@verb
def import_(
    console: Console,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Architecture of Timeloop (3, 4) or AccelForge.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the device file here, not to stdout.")
    ] = None,
) -> None:
    """Translate an architecture of Timeloop or AccelForge: levels, capacities, bandwidths, energies, fan-outs.

    \b
    tilec device import arch.yaml
    tilec device import arch.yaml -o mine.yaml

    What was dropped and what was assumed is told, and stands in the file as comments. Templates must be rendered
    first; energies of Timeloop come from an energy table in the same file.
    """
    from tilec.spec.foreign import translate

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("the file is binary", str(file), "Name a YAML file.") from error
    except OSError as error:
        raise unreadable(error, str(file)) from error
    out = None if output is None or str(output) == "-" else output
    translation = translate(text, str(file), (out or file).stem)
    for head, sentences in (("assumed", translation.assumed), ("dropped", translation.dropped)):
        for sentence in sentences:
            console.note(f"{head}: {sentence}")
    if out is None:
        console.data(translation.text)
    else:
        write_text(out, translation.text)
        console.note(f"device: {out}")
