"""Calls made ahead by child processes: results, errors, lost processes, ends."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from unittest import mock

import pytest

from tilec.calls_ahead import CallsAhead
from tilec.errors import UsageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


def where(number: int) -> tuple[int, int]:
    """The process that computes it."""
    return os.getpid(), number


def refused(number: int) -> None:
    """An error that a user can act on."""
    raise UsageError(f"{number} is wrong", "here", "Take another.")


def lost(parent: int) -> int:
    """A process that is killed, unless it is the parent."""
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return parent


def slow(seconds: float) -> float:
    """A call that takes long."""
    time.sleep(seconds)
    return seconds


Left = Callable[[], list[int | None]]


@pytest.fixture
def left() -> Left:
    """Tells the child processes that still run, of those that began in the test: other tests may keep some."""
    before = {child.pid for child in multiprocessing.active_children()}
    return lambda: [child.pid for child in multiprocessing.active_children() if child.pid not in before]


def test_calls_are_made_elsewhere_and_once() -> None:
    with CallsAhead(2) as ahead:
        ahead.begin("a", where, 1)
        process, number = ahead.result("a", where, 1)
        assert (process != os.getpid(), number) == (True, 1)
        assert ahead.result("a", where, 1) == (process, 1), "it is known"
        assert ahead.result("a", where, 2)[1] == 2, "it is not taken for another argument"
        assert ahead.result("b", where, 3)[1] == 3, "it begins when it is asked for"


def marked(number: int) -> int:
    """How often this process, or one that it was forked from, has been here before."""
    MARKS.append(number)
    return len(MARKS) - 1


MARKS: list[int] = []


def together(number: int) -> tuple[int, int]:
    """The process that computes it, with others at the same time, and how often it was marked."""
    time.sleep(0.3)
    return os.getpid(), len(MARKS)


def test_what_the_first_call_imports_every_process_has() -> None:
    with CallsAhead(3) as ahead:
        assert ahead.result("first", marked, 0) == 0
        for key in "abc":
            ahead.begin(key, together, 0)
        found = {ahead.result(key, together, 0) for key in "abc"}
    assert len(found) == 3
    assert {marks for _, marks in found} == {1}


def test_errors_are_those_of_the_call() -> None:
    with CallsAhead(1) as ahead, pytest.raises(UsageError) as caught:
        ahead.result("a", refused, 7)
    assert str(caught.value) == "here: 7 is wrong\n  Take another."


def test_what_a_lost_process_had_is_computed_here() -> None:
    with CallsAhead(2) as ahead:
        for key in "abc":
            ahead.begin(key, lost, os.getpid())
        assert [ahead.result(key, lost, os.getpid()) for key in "abc"] == 3 * [os.getpid()]
        assert ahead.result("d", where, 4) == (os.getpid(), 4), "nor is anything begun then"


def test_nothing_runs_after_an_interrupt(left: Left) -> None:
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), CallsAhead(2) as ahead:
        for number in range(4):
            ahead.begin(str(number), slow, 60 + number)
        raise KeyboardInterrupt
    while left() and time.monotonic() < begin + 30:
        time.sleep(0.01)
    assert left() == []


def test_no_process_is_forked_for_nothing(left: Left) -> None:
    with CallsAhead(2):
        assert left() == []


def unsendable(number: int) -> object:
    """A result that no process can send."""
    return lambda: number


def test_what_cannot_be_sent_is_computed_here() -> None:
    with CallsAhead(2) as ahead:
        assert ahead.result("a", unsendable, 5)() == 5


def out_of_processes(number: int) -> int:
    """The first call, after which no process can be forked."""
    os.fork = mock.Mock(side_effect=BlockingIOError)  # in the child alone
    return number


def test_where_no_more_processes_can_be_forked_calls_are_computed() -> None:
    with CallsAhead(3) as ahead:
        assert ahead.result("a", out_of_processes, 1) == 1
        for key in "bcd":
            ahead.begin(key, together, 0)
        assert len([ahead.result(key, together, 0) for key in "bcd"]) == 3
