"""An object that lives in a process of its own: crashes there are errors here, its memory is its own."""

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, Self

from tilec.errors import TilecError


class RemoteError(TilecError):
    """The process of a remote object died or its object failed."""


class Remote:
    """Calls methods of `factory(*arguments)` in a fresh process; use it as a context.

    Arguments and results are pickled. Raises the TilecError that the object raised, RemoteError for any other failure,
    with `name` saying what runs there.
    """

    def __init__(self, name: str, factory: Callable[..., Any], *arguments: Any) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, factory, arguments), daemon=True)
        with _undisturbed():
            self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ready(self) -> None:
        """Wait until the object is made."""
        self.answer()

    def call(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        """The result of `object.method(*arguments)`; a process that takes longer than `timeout` seconds is killed."""
        self.ask(method, *arguments)
        return self.answer(timeout)

    def ask(self, method: str, *arguments: Any) -> None:
        """Begin `object.method(*arguments)`; `answer` gives its result."""
        with suppress(BrokenPipeError):  # a dead process is reported by what follows
            self._connection.send((method, arguments))

    @property
    def connection(self) -> Connection:
        """What becomes readable when there is an answer, or when the process has ended."""
        return self._connection

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(timeout=1)
        self.kill()

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()

    def answer(self, timeout: float | None = None) -> Any:
        """The next result; the first one says that the object was made."""
        if timeout is not None and not self._connection.poll(max(0.0, timeout)):
            self.kill()
            raise RemoteError(f"{self.name} did not answer in time")
        try:
            worked, result = self._connection.recv()
        except (EOFError, ConnectionError):
            raise RemoteError(f"{self.name} {self._end()}") from None
        if worked:
            return result
        raise result

    def _end(self) -> str:
        """How the process ended."""
        self._process.join(timeout=5)
        code = self._process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            more = ": this machine lacks instructions that the device has" if -code == signal.SIGILL else ""
            return f"was ended by signal {name}{more}"
        return f"ended with exit code {code}"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits, here and in a process that is started: it would end that one before it can look away."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, factory: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Life of the process: make the object, then answer calls until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        target = factory(*arguments)
        connection.send((True, None))
        while True:
            method, given = connection.recv()
            connection.send((True, getattr(target, method)(*given)))
            del given  # it may be large, and the next one comes while this one would still be there
    except (EOFError, BrokenPipeError):
        sys.exit(0)
    except Exception as error:  # whatever it is, the caller has to hear of it
        known = error if isinstance(error, TilecError) else RemoteError(f"{type(error).__name__}: {error}")
        with suppress(OSError):
            connection.send((False, known))
        sys.exit(1)
