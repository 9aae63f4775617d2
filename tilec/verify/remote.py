"""An object in a process of its own: a crash there is an error here, and its memory is separate."""

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any, Self

from tilec import own_process
from tilec.errors import TilecError

_CAUSES = {
    "SIGILL": ": this machine lacks instructions that the device has",
    "SIGBUS": ": a file that it had mapped was overwritten in place by another program, or its disk failed",
}
"""What a signal means that a process does not send itself."""


CONTEXT = multiprocessing.get_context("spawn")
"""How a process begins: fresh, since a fork of this one would have its memory and its locks."""


class RemoteError(TilecError):
    """The process of a remote object died or its object failed."""


class Remote:
    """Calls methods of `factory(*arguments)` in a fresh process; use it as a context.

    Arguments and results are pickled. Raises the TilecError that the object raised, RemoteError for any other failure,
    whose message begins with `name`.
    """

    def __init__(self, name: str, factory: Callable[..., Any], *arguments: Any) -> None:
        self.name = name
        self._connection, child_end = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=_serve, args=(child_end, factory, arguments), daemon=True)
        with _undisturbed():
            self._process.start()
        child_end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ready(self) -> None:
        """Wait until the object is constructed."""
        self.answer()

    def call(self, method: str, *arguments: Any, timeout: float | None = None) -> Any:
        """The result of `object.method(*arguments)`; a process that takes longer than `timeout` seconds is killed."""
        self.ask(method, *arguments)
        return self.answer(timeout)

    def ask(self, method: str, *arguments: Any) -> None:
        """Begin `object.method(*arguments)`; `answer` returns its result."""
        with suppress(BrokenPipeError):  # a dead process is reported by what follows
            self._connection.send((method, arguments))

    @property
    def connection(self) -> Connection:
        """The connection, which becomes readable when there is an answer or the process has ended."""
        return self._connection

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(timeout=1)
        self.kill()

    def kill(self) -> None:
        """End the process at once."""
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()

    def answer(self, timeout: float | None = None) -> Any:
        """The next result; the first one only confirms that the object was constructed."""
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
        """Description of how the process ended."""
        self._process.join(timeout=5)
        code = self._process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            return f"was ended by signal {name}{_CAUSES.get(name, '')}"
        return f"ended with exit code {code}"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Block Ctrl-C here and in a process started meanwhile: it would be ended before it can ignore the signal."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else `start` does it, and lets the signal pass again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, factory: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Main loop of the process: construct the object, then answer calls until the other side closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    own_process.begin()
    try:
        target = factory(*arguments)
        connection.send((True, None))
        while True:
            method, arguments_of_call = connection.recv()
            connection.send((True, getattr(target, method)(*arguments_of_call)))
            del arguments_of_call  # it may be large, and must not stay in memory while the next one arrives
    except (EOFError, BrokenPipeError):
        sys.exit(0)
    except Exception as error:  # any error is reported to the caller
        reported = error if isinstance(error, TilecError) else RemoteError(f"{type(error).__name__}: {error}")
        with suppress(OSError):
            connection.send((False, reported))
        sys.exit(1)
