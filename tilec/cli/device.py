"""`tilec device`: which devices there are, what one says, and measuring this machine."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tilec.artifact import write_text
from tilec.cli.console import Console
from tilec.cli.verb import EXIT_CODES, verb

app = typer.Typer(no_args_is_help=True, help="Devices: list them, show one, measure this machine.")

Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command("list", epilog=EXIT_CODES)
@verb
def list_(console: Console, json: Json = False) -> None:
    """List the devices that come with tilec.

    \b
    tilec device list
    tilec device list --json
    """
    from tilec.spec.resolve import HOST, packaged, resolve_device

    found = {name: resolve_device(name) for name in packaged("devices")}
    described = {name: device.description for name, device in found.items()}
    described[HOST] = "this machine, measured once"
    if json:
        console.json({"devices": described})
        return
    width = max(map(len, described))
    console.data("\n".join(f"{name:<{width}}  {text}" for name, text in described.items()))


@app.command(epilog=EXIT_CODES)
@verb
def show(
    console: Console,
    device: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A device, or host for this machine.")],
    json: Json = False,
) -> None:
    """Print a device file, checked; with --json what it says.

    \b
    tilec device show a100
    tilec device show host > device.yaml
    """
    from tilec.spec.resolve import device_source, parse_device

    source = device_source(device)
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
