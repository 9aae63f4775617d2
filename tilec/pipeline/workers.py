"""Independent tasks on worker processes of this machine or of a cluster: Dask distributed, extra `tilec[cluster]`.

Results come in the order of the tasks, so that they are the same with any number of workers. A task whose worker is
lost is done again elsewhere.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from tilec.errors import TilecError, UnavailableError, UsageError
from tilec.extras import install
from tilec.progress import Advance
from tilec.version import __version__

Item = TypeVar("Item")
Result = TypeVar("Result")

SCHEME = "dask://"

LOST = 10
"""Workers that one task may lose before it counts as what ends them."""

CONNECTING = 20
"""Seconds to wait for a scheduler, and for its first worker."""


class Workers(Protocol):
    """Does tasks."""

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], advance: Advance) -> list[Result]:
        """The results of a module's function on all items, in their order. Raises what the first that fails raises."""


def in_turn(function: Callable[[Item], Result], items: Sequence[Item], advance: Advance) -> list[Result]:
    """One after another in this process."""
    results = []
    for item in items:
        results.append(function(item))
        advance(len(results), len(items))
    return results


@contextmanager
def workers_of(place: str | None) -> Iterator[Workers]:
    """The workers at a place: a number of processes here, `dask://HOST:PORT`, or None for this process.

    Raises UsageError for another text, UnavailableError without Dask, a scheduler, or workers of this version.
    """
    if place is None:
        yield in_turn
        return
    here = re.fullmatch(r"[1-9]\d{0,3}", place)
    if here is None and not re.fullmatch(re.escape(SCHEME) + r"[^/]+:\d+", place):
        raise UsageError(f"{place!r} names no workers", "--workers", f"Give a number, or {SCHEME}HOST:PORT.")
    try:
        import distributed
    except ImportError as error:
        raise UnavailableError(f"Dask is not installed: {error}", hint=install("cluster")) from error
    import dask

    settings = {"distributed.scheduler.allowed-failures": LOST, "distributed.comm.timeouts.connect": CONNECTING}
    with dask.config.set(settings):
        if here is None:
            with _connected(distributed, "tcp://" + place.removeprefix(SCHEME)) as client:
                _require_version(client, place)
                yield _on(client)
            return
        with (
            distributed.LocalCluster(
                n_workers=int(place),
                threads_per_worker=1,
                dashboard_address=None,
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield _on(client)


def _connected(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=CONNECTING)
    except (OSError, TimeoutError) as error:
        raise UnavailableError(
            f"no Dask scheduler answers at {address}", "--workers", "Start one: `dask scheduler`, `dask worker`."
        ) from error


def _require_version(client: Any, place: str) -> None:
    """Raise UnavailableError for a cluster without workers, or with one of another version."""
    try:
        client.wait_for_workers(1, timeout=CONNECTING)
        found = client.run(_version)
    except (TimeoutError, ImportError) as error:
        hint = "Install tilec where the workers run, or leave --workers out."
        raise UnavailableError(f"no worker of {place} has tilec: {error}", "--workers", hint) from error
    others = sorted({version for version in found.values() if version != __version__})
    if others:
        raise UnavailableError(
            f"workers of {place} have tilec {others[0]}, this is {__version__}", "--workers", "Install the same there."
        )


def _version() -> str:
    return __version__


def _on(client: Any) -> Workers:
    def work(function: Callable[[Item], Result], items: Sequence[Item], advance: Advance) -> list[Result]:
        from distributed import KilledWorker, as_completed

        futures = [client.submit(_done, function, item, pure=False) for item in items]
        for count, _ in enumerate(as_completed(futures), 1):
            advance(count, len(items))
        try:
            return [future.result() for future in futures]
        except KilledWorker as error:
            raise TilecError(f"a task ended {LOST} workers", hint="Run it alone, without --workers.") from error

    return work


def _done(function: Callable[[Item], Result], item: Item) -> Result:
    """A task on a worker, which shares its machine with others."""
    from tilec.spec.cpus import without_children

    with without_children():
        return function(item)
