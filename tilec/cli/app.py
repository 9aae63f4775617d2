"""The commands of `tilec`, in the order in which the pipeline runs them."""

import functools
import re
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from tilec.cli import cache, device, zoo
from tilec.cli.bench import bench
from tilec.cli.bounds import bounds
from tilec.cli.capture import capture
from tilec.cli.codegen import codegen
from tilec.cli.compile import compile_
from tilec.cli.diff import diff
from tilec.cli.doctor import doctor
from tilec.cli.explain import explain
from tilec.cli.generate import generate
from tilec.cli.import_ import import_
from tilec.cli.inspect import inspect
from tilec.cli.lint import lint
from tilec.cli.output_text import escape_unencodable
from tilec.cli.report import report
from tilec.cli.run import run_
from tilec.cli.schedule import schedule
from tilec.cli.schema import schema
from tilec.cli.streams import abandon_output, unwritten
from tilec.cli.verb import EXIT_CODES, INTERRUPTED, verb
from tilec.cli.verify import verify
from tilec.version import __version__

app = typer.Typer(
    name="tilec",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"tilec {__version__}", flush=True)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compile ONNX models for devices described in YAML; every decision is written down as JSON.

    \b
    tilec zoo export mobilenet-v2
    tilec compile mobilenet-v2.onnx --device host
    tilec bench mobilenet-v2.tilec/ --against onnxruntime
    """


_VERBS = (
    import_,
    schedule,
    codegen,
    verify,
    compile_,
    run_,
    generate,
    bench,
    capture,
    diff,
    explain,
    inspect,
    bounds,
    report,
    lint,
    schema,
    doctor,
)

for command in _VERBS:
    app.command(command.__name__.rstrip("_"), epilog=EXIT_CODES)(verb(command))
app.add_typer(device.app, name="device")
app.add_typer(zoo.app, name="zoo")
app.add_typer(cache.app, name="cache")


def _refuse_empty(words: Sequence[str]) -> None:
    """Exit for an argument that is empty, be it behind `--option=`: as a path it would be this folder."""
    for before, word in zip(("tilec", *words), words, strict=False):
        if not word or re.fullmatch(r"--[a-z-]+=", word):
            where = f"{word[:-1]} is" if word else f"the argument after {before!r} is"
            sys.stderr.write(
                f"error: {where} empty\n  Is it a variable that is not set? Give it a value, or leave it out.\n"
            )
            sys.exit(2)


@functools.cache
def _command() -> Callable[..., Any]:
    """All verbs with their options as a command, made once: that takes longer than to parse a command line."""
    return get_command(app)


def run() -> None:
    """Run the command line and exit."""
    escape_unencodable()
    _refuse_empty(sys.argv[1:])
    try:
        _command()(prog_name="tilec")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:  # of --help and --version; verbs explain their own
        abandon_output()
        sys.stderr.write(f"error: {unwritten(error)}\n")
        sys.exit(1)
    finally:
        # Of an interrupt that left an `exec`, as `dataclass` uses it, Python would end `python -m` by the signal,
        # whatever the exit code; the next `exec` makes it forget.
        exec("")
