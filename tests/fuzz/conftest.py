"""One process that compiles random models for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.worker import Worker


@pytest.fixture(scope="session")
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process
