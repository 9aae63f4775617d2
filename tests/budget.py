"""Processor seconds of tests: with `--budget SECONDS` a run fails where one takes more, which then belongs to `slow`.

What the process itself uses counts, and what the processes have used that it waited for; preparing a fixture counts
apart from the test that comes first to need it.
"""

from __future__ import annotations

import resource
from collections.abc import Generator

import pytest


def used() -> float:
    """Processor seconds so far."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Budget:
    """Notes what takes longer; the notes travel with reports, which xdist hands to its controller."""

    def __init__(self, config: pytest.Config, limit: float) -> None:
        self.config = config
        self.limit = limit
        self.over: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        return (yield from self._measured(item, "fixtures of "))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        return (yield from self._measured(item, ""))

    def _measured(self, item: pytest.Item, of: str) -> Generator[None, None, None]:
        before = used()
        try:
            return (yield)
        finally:
            item.user_properties.append(("processor seconds", (f"{of}{item.nodeid}", used() - before)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for key, value in report.user_properties:
            if key == "processor seconds" and isinstance(value, list | tuple) and value[1] > self.limit:
                self.over[value[0]] = value[1]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.over and not hasattr(self.config, "workerinput"):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, seconds in sorted(self.over.items(), key=lambda each: -each[1]):
            terminalreporter.write_line(
                f"OVER BUDGET {seconds:.1f} CPU s, {self.limit:g} are allowed: {name}: make it quicker, or `slow`",
                red=True,
            )
