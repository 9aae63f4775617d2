"""Processor seconds of tests: with `--budget SECONDS` a run fails where one takes more, which then belongs to `slow`.

What the process itself uses counts, and what the processes have used that it waited for; preparing a fixture counts
apart from the test that comes first to need it. Threads that wait for a busy core burn seconds too: a test that takes
more is run once more, and the less of both counts.
"""

from __future__ import annotations

import resource
from collections.abc import Generator

import pytest
from _pytest.runner import runtestprotocol

SECONDS = "processor seconds"
FIXTURES = "fixtures of "


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

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test, and once more where it passes and takes too long."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        passed = all(report.passed for report in reports)
        if passed and _seconds(reports, item.nodeid) > self.limit >= _seconds(reports, FIXTURES + item.nodeid):
            item.user_properties[:] = [each for each in item.user_properties if each[0] != SECONDS]
            again = runtestprotocol(item, nextitem=nextitem, log=False)
            failed = not all(report.passed for report in again)
            less = _seconds(again, item.nodeid) < _seconds(reports, item.nodeid)
            reports = again if failed or less else reports
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        return (yield from self._measured(item, FIXTURES))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        return (yield from self._measured(item, ""))

    def _measured(self, item: pytest.Item, of: str) -> Generator[None, None, None]:
        before = used()
        try:
            return (yield)
        finally:
            item.user_properties.append((SECONDS, (f"{of}{item.nodeid}", used() - before)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for key, value in report.user_properties:
            if key == SECONDS and isinstance(value, list | tuple) and value[1] > self.limit:
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


def _seconds(reports: list[pytest.TestReport], name: str) -> float:
    """What was measured of a test, or of its fixtures."""
    told = [value for report in reports for key, value in report.user_properties if key == SECONDS]
    return max((value[1] for value in told if isinstance(value, tuple) and value[0] == name), default=0.0)
