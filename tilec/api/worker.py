"""The process that compiles for a session: a request on standard input, an error as JSON on standard output."""

import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from tilec import own_process
from tilec.abi.manifest import FILE, KEY
from tilec.api.cache import Cache
from tilec.api.cache_eviction import limit_bytes, prune, share
from tilec.api.failures import as_kind
from tilec.api.request import LINKS, Request
from tilec.api.structure import remember, twin
from tilec.artifact import decode, pretty, read_artifact, write_text
from tilec.errors import TilecError, UnavailableError, UsageError
from tilec.pipeline.job import FILES
from tilec.threads import exit_process

if TYPE_CHECKING:
    from tilec.pipeline import Job
    from tilec.pipeline.job import Listener
    from tilec.progress import Advance

log = logging.getLogger("tilec")


class Log:
    """Tells the log which stage is done."""

    @contextmanager
    def stage(self, name: str) -> "Iterator[Advance]":
        """A stage runs."""
        from tilec.progress import unseen

        yield unseen
        log.info("%s: done", name)

    def skipped(self, stage: str) -> None:
        """A stage was fresh."""
        log.info("%s: unchanged, skipped", stage)

    def step(self, text: str) -> None:
        """A part of a stage is done."""
        log.info("%s", text)

    def note(self, text: str) -> None:
        """A stage has something to say."""
        log.info("%s", text)


def build(request: Request, listener: "Listener | None" = None) -> None:
    """Compile into the cache, unless another process has done so in the meantime.

    Raises TilecError.
    """
    limit_bytes()
    with _aside(request) as folder:
        if folder is not None:
            _compile(request, folder, listener or Log())
    remember(request)


def refit(request: Request) -> bool:
    """Compile into the cache by the code of a model that differs in its weights alone; False where there is none. No
    compiler is needed. Raises TilecError."""
    from tilec.pipeline.refit import refit as refit_model

    like = twin(request)
    if like is None:
        return False
    limit_bytes()
    with suppress(_NotAlikeError), _aside(request) as folder:
        if folder is not None:
            try:
                alike = refit_model(_job(request, Log()), Path(request.model), like, folder)
            except OSError:  # another process has removed the twin
                alike = False
            if not alike:
                raise _NotAlikeError
            _finish(request, folder)
        return True
    return False


class _NotAlikeError(Exception):
    """A model that has to be compiled."""


@contextmanager
def _aside(request: Request) -> "Iterator[Path | None]":
    """A folder aside that takes its place in the cache when it is complete; None where the model is there. What a
    killed process left is removed first."""
    cache = Cache(Path(request.cache))
    folder = cache.session(request.key)
    with cache.locked(request.key):
        if folder.is_dir():
            yield None
            return
        aside = folder.with_suffix(".tmp")
        shutil.rmtree(aside, ignore_errors=True)
        try:
            yield aside
            os.replace(aside, folder)
            prune(cache, (folder, Path(request.model).parent))
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise


def _compile(request: Request, folder: Path, listener: "Listener") -> None:
    from tilec.pipeline import compile_model
    from tilec.pipeline.kernels_ahead import kernels_ahead

    model = Path(request.model)
    with kernels_ahead(_job(request, listener)) as job:
        done = compile_model(job, model, folder, last="codegen")
    if KEY not in done["codegen"].body:
        raise UnavailableError(
            f"models for {request.device} cannot run: it has no code generator yet",
            str(model),
            "`tilec compile` plans for it, and verifies on the tile machine.",
        )
    _finish(request, folder)


def _finish(request: Request, folder: Path) -> None:
    """Let a compiled model share its weights with others, and name the files that it reads elsewhere. Raises UsageError
    where the model is not the one that was asked for any more."""
    imported = read_artifact(folder / FILES["graph"], "graph")
    files: Mapping[str, str] = imported.body.get("files", {})
    same = all(files.get(name, digest) == digest for name, digest in request.weights.items())
    if imported.inputs["model"] != request.sha256 or not same:
        raise UsageError("the model changed while it was compiled", request.model, "Open the session again.")
    runtime = read_artifact(folder / FILE, "kernels").body[KEY]
    share(folder, runtime.get("weights", []), Cache(Path(request.cache)))
    write_text(folder / LINKS, pretty(_links(folder, request)))


def _links(folder: Path, request: Request) -> dict[str, str]:
    """The links in a compiled model's folder, see LINKS."""
    model = Path(request.model)
    known = {(model.parent / name).resolve(): name for name in request.weights} | {model.resolve(): ""}
    links = {str(path.relative_to(folder)): path.resolve() for path in folder.rglob("*") if path.is_symlink()}
    return {name: known[real] for name, real in links.items() if real in known}


def _job(request: Request, listener: "Listener") -> "Job":
    from tilec.pipeline.request import device_job
    from tilec.spec.effective import effective_recipe

    # Nobody reads the plan: it needs no bounds.
    flags: dict[str, tuple[str, Any]] = {
        "device": ("device", request.device),
        "schedule.bounds": ("a session", False),
    }
    for symbol, size in request.sizes.items():
        flags[f"shapes.{symbol}.value"] = ("the inputs' shapes", size)
    for symbol, (low, high, divisor) in request.ranges.items():
        flags[f"shapes.{symbol}.range"] = ("the sizes asked for", [low, high])
        if divisor > 1:
            flags[f"shapes.{symbol}.divisor"] = ("the sizes asked for", divisor)
    effective = effective_recipe(request.recipe, flags, os.environ)
    if effective.recipe.state == "in-place" and not request.rooms:
        flags["state"] = ("a session, which has the model's inputs", "same-shape")
        effective = effective_recipe(request.recipe, flags, os.environ)
    return device_job(effective, flags, listener, Path(request.cache))


def _prepare(device: str) -> None:
    """Import what a compilation for a device needs; what is wrong with it, the request tells."""
    import tilec.importer.convert
    import tilec.pipeline
    import tilec.scheduler.schedule  # noqa: F401
    from tilec.codegen.backend import backend_of
    from tilec.spec.effective import effective_recipe

    with suppress(TilecError):
        spec = effective_recipe(None, {"device": ("device", device)}, os.environ).device
        backend = backend_of(spec)
        if backend is not None:
            backend.can_build(spec)


def main() -> None:
    """Read a request, compile, exit with 0, or with the error's exit code after telling it.

    An argument is the device of a request that comes later: modules are imported meanwhile.
    """
    signal.signal(signal.SIGTERM, terminate)
    own_process.begin()
    for device in sys.argv[1:]:
        _prepare(device)
    request = decode(Request, json.loads(sys.stdin.read()))
    if request.background and hasattr(os, "nice"):
        os.nice(10)
    with told_errors():
        build(request)


@contextmanager
def told_errors() -> "Iterator[None]":
    """Write an error of the block as JSON to standard output, and exit with its code."""
    try:
        yield
    except TilecError as error:
        sys.stdout.write(json.dumps(as_kind(error)))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        exit_process(130)
    except SystemExit as end:
        exit_process(int(end.code or 0))


def terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    """End on SIGTERM as on Ctrl-C, so that what is half-made is removed."""
    sys.exit(143)


if __name__ == "__main__":
    main()
