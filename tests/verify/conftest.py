"""Processes of these tests begin warm."""

from tests.warm import warm_processes  # noqa: F401
