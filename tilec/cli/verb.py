"""Common behaviour of all commands: --quiet, --verbose, --debug, and messages and exit codes of errors."""

import errno
import functools
import inspect
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from tilec.artifact import Json
from tilec.cli.console import Console
from tilec.cli.streams import abandon_output
from tilec.errors import TilecError, UsageError

INTERRUPTED = 130
TERMINATED = 143

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 usage or invalid config, 3 changes present (diff --exit-code), 4 verification "
    "mismatch, 5 unsupported operator or feature, 6 device or toolchain unavailable, 7 nothing verified, "
    "130 interrupted."
)

_COMMON: dict[str, Any] = {
    "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and data only.")],
    "verbose": Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")],
    "debug": Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")],
}


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of `function(console, ...)`: add the common options, and turn errors into exit codes."""

    @functools.wraps(function)
    def command(*, quiet: bool, verbose: bool, debug: bool, **options: Any) -> None:
        console = Console(-1 if quiet else int(verbose), debug)
        console.listen_to_log()
        before = signal.signal(signal.SIGTERM, _terminate)
        try:
            function(console, **options)
        except BaseException as error:
            raise typer.Exit(_report(console, error, as_json=bool(options.get("json")))) from error
        finally:
            signal.signal(signal.SIGTERM, before)

    own_parameters = list(inspect.signature(function).parameters.values())[1:]
    own_parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own_parameters]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
        for name, annotation in _COMMON.items()
    ]
    parameters = [*own_parameters, *common]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _report(console: Console, error: BaseException, *, as_json: bool = False) -> int:
    """Print an error on stderr, `as_json` as an object; returns the exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, BrokenPipeError):
        abandon_output()  # its reader has seen enough
        return 1
    if console.debug:
        traceback.print_exception(error)
    told, code = _explained(error)
    if as_json:
        fields: dict[str, Json] = {"fix": told.hint, "message": told.message, "place": told.place}
        console.error_json({"error": {**fields, "exit_code": code}})
    else:
        console.error(str(told))
    return code


def _explained(error: BaseException) -> tuple[TilecError, int]:
    """An error with message, place and fix, and its exit code."""
    if isinstance(error, UnicodeEncodeError) and not error.object.isascii():
        error = _unwritable(error)
    if isinstance(error, TilecError):
        return error, error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return TilecError("interrupted"), INTERRUPTED
    if isinstance(error, MemoryError):
        return TilecError("out of memory", hint="Give it smaller sizes, or end what else takes memory."), 1
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return _without_room(error), 1
    hint = "This is a bug in tilec. Run again with --debug for the traceback."
    return TilecError(f"{type(error).__name__}: {error}", hint=hint), 1


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE)


def _without_room(error: OSError) -> TilecError:
    """The error for a file, most often a temporary one, that the system does not let anybody write."""
    what = Path(os.fsdecode(error.filename)).name if error.filename else "a temporary file"
    folder = os.environ.get("TMPDIR", "/tmp")
    hint = f"Temporary files are in {folder}: free some space, or let TMPDIR name another folder."
    return TilecError(f"cannot write {what}: {error.strerror}", hint=hint)


def _unwritable(error: UnicodeEncodeError) -> TilecError:
    """The error for a name that no artifact and no file system can hold in the encoding of this locale."""
    name, encoding = ascii(error.object[error.start : error.end]), sys.getfilesystemencoding()
    hint = "Set PYTHONUTF8=1, or a locale with UTF-8 such as LC_ALL=C.UTF-8."
    return UsageError(f"a name has {name}, which is no text where file names are {encoding}", hint=hint)


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    """End on SIGTERM as on Ctrl-C, so that files that are being written are removed."""
    raise SystemExit(TERMINATED)
