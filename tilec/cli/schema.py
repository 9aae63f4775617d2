"""`tilec schema`: the JSON Schema of device and recipe files, for editors."""

from typing import Annotated

import typer

from tilec.cli.console import Console


def schema(
    console: Console, what: Annotated[str, typer.Argument(metavar="device|recipe", help="Which file to describe.")]
) -> None:
    """Print the JSON Schema of device or recipe files.

    \b
    tilec schema device > device.schema.json
    """
    from tilec.spec.schema import schema as schema_of

    console.json(schema_of(what))
