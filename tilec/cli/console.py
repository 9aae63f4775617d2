"""Output of a verb: data on stdout, everything else on stderr; one line per stage, with progress on a terminal."""

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilec.artifact import Json, compact, pretty
from tilec.cli.progress_lines import interval, progress_lines
from tilec.cli.streams import abandon_output, unwritten
from tilec.errors import TilecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tilec.progress import Advance


WIDEST = 2000
"""Limit of characters of a line of an error; names and values in it may be far longer."""


class OutputError(TilecError):
    """Standard output cannot be written."""


@dataclass
class Console:
    """Output of one command; `verbosity` is -1 for --quiet, 1 for -v.

    It is the pipeline's listener, which calls `stage` and `skipped`.
    """

    verbosity: int = 0
    debug: bool = False
    progress: bool = field(default_factory=lambda: sys.stderr.isatty() and os.environ.get("TERM") != "dumb")

    @property
    def quiet(self) -> bool:
        """Whether --quiet was given."""
        return self.verbosity < 0

    def data(self, text: str) -> None:
        """Write the result to stdout. Raises OutputError when it is full or closed."""
        try:
            sys.stdout.write(text if text.endswith("\n") else text + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            abandon_output()
            raise OutputError(unwritten(error), hint="Free some space, or give it somewhere to go.") from error

    def json(self, value: Json) -> None:
        """Write one JSON object to stdout."""
        self.data(pretty(value))

    def note(self, text: str) -> None:
        """Print a line on stderr, unless quiet."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def details(self, lines: "Callable[[], Iterable[str]]") -> None:
        """Print more lines on stderr; they are produced only when verbose."""
        if self.verbosity > 0:
            print("\n".join(lines()), file=sys.stderr, flush=True)

    def error(self, text: str) -> None:
        """Print an error, whatever the verbosity."""
        text = "\n".join(map(_shortened, text.split("\n")))
        head = "\x1b[1;31merror:\x1b[0m" if _colors(sys.stderr.isatty()) else "error:"
        print(f"{head} {text}", file=sys.stderr, flush=True)

    def error_json(self, value: Json) -> None:
        """Print an error as one JSON object on one line of stderr, the last one, whatever the verbosity."""
        print(compact(value), file=sys.stderr, flush=True)

    def skipped(self, stage: str) -> None:
        """Report a stage that had nothing to do."""
        self.note(f"{stage}: unchanged, skipped")

    def step(self, text: str) -> None:
        """Print a line about a part of a stage where no progress is shown."""
        if not self.progress:
            self.note(text)

    @contextmanager
    def stage(self, name: str) -> "Iterator[Advance]":
        """Show a stage while it runs and one line when it is done; yields `advance(done, total, step)`."""
        begin = time.monotonic()
        if self.progress and self.verbosity >= 0:
            with _bar(name) as advance:
                yield advance
        elif self.verbosity >= 0 and (seconds := interval()):
            with progress_lines(name, self.note, seconds) as advance:
                yield advance
        else:
            from tilec.progress import unseen

            yield unseen
        self.note(f"{name}: done in {time.monotonic() - begin:.1f} s")

    def listen_to_log(self) -> None:
        """Send the package's log to stderr: warnings, and with -v information."""
        log = logging.getLogger("tilec")
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.handlers = [handler]
        log.propagate = False
        levels = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}
        log.setLevel(levels.get(self.verbosity, logging.DEBUG))


@contextmanager
def _bar(name: str) -> "Iterator[Advance]":
    """A progress line on the terminal's stderr with the remaining time, removed at the end of the block; it begins anew
    with every step."""
    from rich.console import Console as RichConsole
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=RichConsole(stderr=True), transient=True) as progress:
        task, current = progress.add_task(name, total=None), ""

        def advance(done: int, total: int, step: str = "") -> None:
            nonlocal current
            if step != current:
                current = step
                progress.reset(task, total=total, description=f"{name}: {step}")
            progress.update(task, completed=done, total=total)

        yield advance


def _shortened(line: str) -> str:
    """The line without its middle if it is longer than WIDEST."""
    return line if len(line) <= WIDEST else f"{line[: WIDEST // 2]} ... {line[-99:]}"


def _colors(terminal: bool) -> bool:
    return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
