"""`tilec schema`: the JSON Schema of device, recipe and type files, for editors."""

from typing import Annotated

import typer

from tilec.cli.console import Console


def schema(
    console: Console, what: Annotated[str, typer.Argument(metavar="device|recipe|type", help="Which file to describe.")]
) -> None:
    """Print the JSON Schema of device, recipe or type files.

    \b
    tilec schema device > device.schema.json
    """
    from tilec.spec.schema import schema as schema_of

    console.json(schema_of(what))
