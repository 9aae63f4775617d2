"""`tilec zoo`: the models that tilec is measured on."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tilec.cli.completion import zoo_models
from tilec.cli.console import Console
from tilec.cli.page import Page
from tilec.cli.verb import EXIT_CODES, verb

LARGEST = (1 << 31) - 1
"""Limit of sizes of an exported model."""


app = typer.Typer(no_args_is_help=True, help="Model zoo: list the models, write one as an ONNX file.")


@app.command("list", epilog=EXIT_CODES)
@verb
def list_(
    console: Console, json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False
) -> None:
    """List the models of the zoo.

    \b
    tilec zoo list
    tilec zoo list --json
    """
    from tilec import zoo

    described = {name: zoo.describe(name) for name in zoo.names()}
    if json:
        console.json({"models": described})
        return
    console.data(Page.of_stdout().rows(list(described.items())))


@app.command(epilog=EXIT_CODES)
@verb
def export(
    console: Console,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A name that `tilec zoo list` prints.", autocompletion=zoo_models)
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write (default: MODEL.onnx).")] = None,
    form: Annotated[
        Literal["fused", "decomposed"],
        typer.Option(help="Operators of opset 20 and later, or primitives of opset 13."),
    ] = "fused",
    batch: Annotated[int, typer.Option(min=1, max=LARGEST, help="Items in the batch.")] = 1,
    seq: Annotated[
        int | None, typer.Option(min=1, max=LARGEST, help="Tokens, rows or pixels (default: the model's own).")
    ] = None,
    dynamic: Annotated[bool, typer.Option("--dynamic", help="Leave batch, sequence and pixels symbolic.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the weights.")] = 0,
) -> None:
    """Write a model of the zoo as an ONNX file.

    \b
    tilec zoo export mobilenet-v2
    tilec zoo export bert-base --seq 64 -o bert.onnx
    tilec zoo export vit-s32 --form decomposed --dynamic
    """
    from tilec import zoo

    path = output or Path(f"{model}.onnx")
    zoo.export(model, path, form=form, batch=batch, seq=seq, dynamic=dynamic, seed=seed)
    console.note(f"model: {path}")
