"""Shared by all tests: the feature marker and its ledger, goldens, hypothesis settings, one cache for probes."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import blas_threads  # noqa: F401
import hypothesis
import pytest
from budget import Budget
from hosts import HOSTS, MEASURED, install
from ledger import load, problems, table, unclaimed
from left_out import unexpected
from slow_cases import UNKNOWN, mark_slow
from together import Together

from tilec.own_process import keep_freed_memory

# Every run draws the same examples; `--hypothesis-profile=anew` (`make test-all`) draws others, and more (examples.py).
hypothesis.settings.register_profile("tilec", deadline=None, derandomize=True)
# For mutants: that an example fails is enough, the smallest one is not wanted.
hypothesis.settings.register_profile(
    "unshrunk", deadline=None, derandomize=True, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate]
)
hypothesis.settings.register_profile("anew", deadline=None, derandomize=False, max_examples=200)
hypothesis.settings.load_profile("tilec")

# `host` is a made-up machine (hosts.py), and nothing touches the user's own cache.
HOME = Path(__file__).parent.parent / ".pytest_cache"
os.environ["XDG_CACHE_HOME"] = str(HOME / "home")

# Sessions are compiled when they are open; those of tests about the compiler in the background ask for it.
os.environ["TILEC_WHILE_COMPILING"] = "wait"
os.environ["TILEC_PROGRESS"] = "0"  # how long a stage takes is not what a test compares

# A shell's background jobs ignore Ctrl-C and hand that down; the processes that tests interrupt must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ledger")
    group.addoption("--ledger", action="store_true", help="fail when a feature marked done has no passing test")
    group.addoption("--features", action="store_true", help="print the ledger with the tests of each id, run none")
    parser.addoption(
        "--complete", action="store_true", help="fail when a test is left out, but for reasons that are known"
    )
    parser.addoption("--budget", type=float, metavar="SECONDS", help="fail when a test takes more processor time")
    parser.addoption("--host", choices=HOSTS, default="usual", help="the made-up machine that `host` is in tests")
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing them")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until everything is collected
    keep_freed_memory()
    config.pluginmanager.register(Ledger(config), "tilec-ledger")
    config.pluginmanager.register(LeftOut(config), "tilec-left-out")
    if config.option.budget is not None:
        config.pluginmanager.register(Budget(config, config.option.budget), "tilec-budget")
    name = config.getoption("--host")
    home = HOME / ("home" if name == "usual" else f"home-{name}")
    os.environ["XDG_CACHE_HOME"] = str(home)
    install(name, home)


@pytest.fixture(autouse=True)
def _measured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests about probing may measure this machine."""
    if request.node.get_closest_marker("probes"):
        monkeypatch.setattr("tilec.spec.probe._timings", MEASURED)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares text with a file in the folder `golden` beside the test."""

    def check(name: str, text: str) -> None:
        file = request.path.parent / "golden" / name
        if request.config.option.update_golden:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8"), "if this is meant, run pytest with --update-golden"

    return check


def pytest_collection_finish() -> None:
    """What the collection made lives on: looking for garbage takes a tenth of what compiles, as in `tilec` itself."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    """Files stay in one process with `--dist loadfile`, and some folders do."""
    return Together(config, log) if config.getoption("dist") == "loadfile" else None


FIRST = ("acceptance", "safety", "zoo", "replay", "scheduler", "codegen", "bench")
"""Folders whose files take longest: they come first, so that no process is left with a long one at the end."""


def _rank(item: pytest.Item) -> int:
    folders = item.path.parts
    return next((place for place, name in enumerate(FIRST) if name in folders), len(FIRST))


def features_of(item: pytest.Item) -> Iterator[str]:
    """Ids that the markers of a test name."""
    for marker in item.iter_markers("feature"):
        yield from marker.args


class Ledger:
    """Collects the ids of passing tests; ids travel as user properties, which xdist hands to its controller."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rows = load()
        self.passed: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        config.stash[UNKNOWN] = mark_slow(items)
        items.sort(key=lambda item: _rank(item))
        for item in items:
            for name in features_of(item):
                if name not in self.rows:
                    raise pytest.UsageError(f"{item.nodeid}: feature {name!r} is not in tests/features.yaml")
                item.user_properties.append(("feature", name))
        if self.config.option.features:
            tests = Counter(name for item in items for name in features_of(item))
            print(table(self.rows, tests))
            items.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.update(str(name) for key, name in report.user_properties if key == "feature")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker = hasattr(self.config, "workerinput")
        if self.config.option.ledger and not worker and problems(self.rows, self.passed):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self.config.option.features and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.config.option.ledger:
            return
        for problem in problems(self.rows, self.passed):
            terminalreporter.write_line(f"LEDGER {problem}", red=True)
        open_ids = unclaimed(self.rows, self.passed)
        if open_ids:
            terminalreporter.write_line(f"ledger: tested but not marked done: {' '.join(open_ids)}")
        done = sum(row.status == "done" for row in self.rows.values())
        terminalreporter.write_line(f"ledger: {done} of {len(self.rows)} features done")


class LeftOut:
    """With `--complete`, a run that leaves out tests for want of a tool fails."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
            self.reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker = hasattr(self.config, "workerinput")
        if self.config.option.complete and not worker and unexpected(self.reasons):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason in unexpected(self.reasons) if self.config.option.complete else ():
            terminalreporter.write_line(f"LEFT OUT {self.reasons[reason]} tests: {reason}", red=True)
