"""How many examples the long property tests draw: few in each run, always the same; many new ones where asked for.

A seed and a count stand beside each such test. They were chosen by what the examples reach: of the seeds that were
tried, one whose few examples take most of the branches (pairs of lines in `lower`, `machine`, `ir`, `scheduler`) that
several times as many took. `make test-all` asks for others with `--hypothesis-profile=anew`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings

Test = TypeVar("Test", bound=Callable[..., Any])
SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example)
MORE = 5
"""Times as many examples in the profile `anew`."""


def examples(count: int, seed: int) -> Callable[[Test], Test]:
    """The first `count` examples of a seed; in the profile `anew` more, of another seed each time, and shrunk."""
    if settings.get_current_profile_name() == "anew":
        return settings(max_examples=MORE * count, suppress_health_check=SLOW)
    quick = settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=SLOW)
    return lambda test: hypothesis.seed(seed)(quick(test))


def seeds(quick: int, every: int) -> list[Any]:
    """The seeds of a test below `every`, as parameters; those from `quick` on are slow."""
    return [*range(quick), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, every))]
