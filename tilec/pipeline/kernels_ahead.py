"""Processes that compile a job's kernels while later ones are decided, and while weights are written (A17)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilec.pipeline.job import Job


@contextmanager
def kernels_ahead(job: Job) -> Iterator[Job]:
    """The job with as many processes as the search may use; the job as it is where that is one."""
    from tilec.calls_ahead import CallsAhead
    from tilec.spec.cpus import process_count

    count = process_count()
    if count == 1:
        yield job
        return
    with CallsAhead(count) as ahead:
        yield replace(job, ahead=ahead)
