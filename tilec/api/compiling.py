"""Compiles a model into the cache, in a process of its own: no compiler is loaded here, a crash there is an error."""

import atexit
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.api.cache import Cache, temporary_cache
from tilec.api.cache_eviction import remove, used
from tilec.api.failures import CompilerError, error_of
from tilec.api.model_source import present
from tilec.api.request import LINKS, Request, available, keyed
from tilec.api.structure import twin
from tilec.api.warn_once import warn_once
from tilec.artifact import bring_files, encode
from tilec.errors import ArtifactError, TilecError, UsageError
from tilec.own_process import modules_path

if TYPE_CHECKING:
    import subprocess

log = logging.getLogger("tilec")


def compiled_folder(request: Request) -> Path:
    """The folder of the compiled model, compiled now unless it is there; its links lead to the request's files.

    Where the cache cannot be written, a folder of this process takes its place. Raises what the compiler raises.
    """
    if request.detached and not available(request):
        from tilec.api import in_background

        if in_background.ask(request):
            request = in_background.made(request)
    request = present(request if request.key else keyed(request))
    place = Cache(Path(request.cache))
    folder = place.session(request.key)
    if not folder.is_dir() and place.writable and not _refit(request):
        _run(request)
    if folder.is_dir():
        try:
            _relink(folder, request)
        except UsageError:
            raise
        except ArtifactError as error:
            log.warning("compiling again: %s", error)
            damaged(folder)
            return compiled_folder(request)
        except TilecError:
            if place.writable:
                raise
        else:
            used(folder)
            return folder
    warn_once(f"the cache {request.cache} cannot be written: compiled models are kept for this process only")
    return compiled_folder(replace(request, cache=temporary_cache(), detached=False))


def _refit(request: Request) -> bool:
    """Whether the model takes over the code of one that differs in its weights alone: that needs no compiler."""
    if twin(request) is None:
        return False
    from tilec.api.worker import refit

    return refit(request)


def _relink(folder: Path, request: Request) -> None:
    """Let the weights that a compiled model reads where they are lead to this request's files, which have the same
    bytes; those that it was compiled from may be gone or changed. Raises UsageError when these changed too."""
    model, place = Path(request.model), Cache(Path(request.cache))
    for name, target in _links(folder, request).items():
        real, sha256 = (model.parent / target, request.weights[target]) if target else (model, request.sha256)
        if place.digest(real) != sha256:
            raise UsageError("the file changed since the session was opened", str(real), "Open the session again.")
        bring_files({name: sha256}, folder, folder, {name: real})


def _links(folder: Path, request: Request) -> dict[str, str]:
    """The links of a compiled model, see LINKS. Raises ArtifactError when they are damaged."""
    path = folder / LINKS
    try:
        links = json.loads(path.read_text(encoding="utf-8"))
        good = all(".." not in Path(name).parts and to in ("", *request.weights) for name, to in links.items())
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ArtifactError(f"the links cannot be read: {error}", str(path)) from error
    if not good:
        raise ArtifactError("the links lead elsewhere", str(path))
    return dict(links)


_running: set["subprocess.Popen[str]"] = set()

_started: list["subprocess.Popen[str]"] = []
"""Compilers that import their modules, or wait for a request."""


@contextmanager
def compiler_started(device: str) -> Iterator[None]:
    """Let a compiler import what it needs for a device while the block prepares what it is to compile: the first
    compilation in the block takes it. One that is not needed is ended."""
    if not sys.executable:
        yield
        return
    child = _start(device)
    _started.append(child)
    try:
        yield
    finally:
        if child in _started:
            _started.remove(child)
            child.kill()  # it has written nothing
            child.communicate()


def _start(*arguments: str) -> "subprocess.Popen[str]":
    """A compiler that waits for a request."""
    import subprocess

    # The same modules as here: -P keeps those of the current folder out unless they are on the path here too.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tilec.api.worker", *arguments],
        env={**os.environ, "PYTHONPATH": modules_path()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(request: Request) -> None:
    """Compile in a child process. Raises the TilecError that it reports."""
    if not sys.executable:
        from tilec.api.worker import build

        build(request)
        return
    try:
        child = _started.pop()
    except IndexError:
        child = _start()
    _running.add(child)
    try:
        out, err = child.communicate(json.dumps(encode(request)))
    except BaseException:
        _end(child)
        raise
    finally:
        _running.discard(child)
    if child.returncode:
        raise _failure(child.returncode, out, err, request)


def _failure(code: int, out: str, err: str, request: Request) -> TilecError:
    """The error that the child process raised, read from its output."""
    place = Path(request.model).name
    try:
        return error_of(**json.loads(out))
    except (ValueError, TypeError):
        if code < 0:
            return TilecError(f"the compiler was ended by signal {signal.Signals(-code).name}", place)
        last = err.strip().splitlines()[-1] if err.strip() else f"exit code {code}"
        return CompilerError(f"the compiler failed: {last}", place, "`tilec compile --debug` shows where.")


def _end(child: "subprocess.Popen[str]") -> None:
    """End a child process, gently: it removes what it was writing."""
    child.terminate()
    from subprocess import TimeoutExpired

    try:
        child.wait(timeout=10)
    except TimeoutExpired:
        child.kill()
        child.wait()


def _end_all() -> None:
    for child in list(_running):
        _end(child)


atexit.register(_end_all)


def damaged(folder: Path) -> None:
    """Take a compiled model that cannot be loaded out of the cache, so that it is compiled again.

    Raises UsageError when it cannot be removed.
    """
    try:
        remove(folder)
    except OSError as error:
        raise UsageError(f"the damaged model cannot be removed: {error.strerror}", str(folder)) from error
