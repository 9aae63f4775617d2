"""Objects in processes of their own: results, errors and deaths come back."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tilec.errors import UsageError
from tilec.verify.remote import Remote, RemoteError


@pytest.fixture(autouse=True, scope="module")
def warm_processes():
    """Here they begin as they do for users."""


class Echo:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.calls = 0

    def say(self, text: str) -> tuple[str, int, int]:
        self.calls += 1
        return self.prefix + text, self.calls, os.getpid()

    def misuse(self) -> None:
        raise UsageError("no such thing", "place", "Try another.")

    def divide(self) -> float:
        return 1 / 0

    def die(self, number: int) -> None:
        os.kill(os.getpid(), number)

    def leave(self) -> None:
        os._exit(7)

    def sleep(self) -> None:
        time.sleep(600)


@pytest.fixture
def echo():
    with Remote("the echo", Echo, "> ") as remote:
        remote.ready()
        yield remote


def test_calls_keep_state_in_another_process(echo):
    assert echo.call("say", "a")[:2] == ("> a", 1)
    text, calls, pid = echo.call("say", "b")
    assert (text, calls) == ("> b", 2)
    assert pid != os.getpid()


def test_errors_for_the_user_come_back_as_they_are(echo):
    with pytest.raises(UsageError, match="no such thing") as found:
        echo.call("misuse")
    assert found.value.hint == "Try another."


def test_other_errors_say_what_they_are(echo):
    with pytest.raises(RemoteError, match="ZeroDivisionError"):
        echo.call("divide")


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGILL, "lacks instructions"), (signal.SIGBUS, "overwritten in place")],
)
def test_a_crash_is_an_error_that_names_the_signal(echo, number, said):
    with pytest.raises(RemoteError, match=said) as found:
        echo.call("die", number)
    assert "the echo" in str(found.value)


def test_an_exit_is_an_error(echo):
    with pytest.raises(RemoteError, match="exit code 7"):
        echo.call("leave")


def test_an_object_that_cannot_be_made():
    with Remote("the echo", Echo) as remote, pytest.raises(RemoteError, match="TypeError"):
        remote.ready()


def test_an_answer_that_does_not_come_in_time_ends_the_process(echo):
    with pytest.raises(RemoteError, match="the echo did not answer in time"):
        echo.call("sleep", timeout=0.1)
    assert not echo._process.is_alive()


def test_answers_are_fetched_later(echo):
    echo.ask("say", "a")
    assert echo.connection.poll(10)
    assert echo.answer(timeout=0)[:2] == ("> a", 1)


FIRST = """
from tilec.verify.remote import Remote
with Remote("the echo", str) as remote:
    status = open(f"/proc/{remote._process.pid}/status").read()
    blocked = int(status.partition("SigBlk:")[2].split()[0], 16)
    print(blocked >> (2 - 1) & 1)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells which signals are blocked")
def test_the_first_process_that_starts_has_interrupts_blocked_too():
    """Python's resource tracker starts with it, and lets interrupts pass again."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("1\n", "")


def test_an_interrupt_while_a_process_starts_is_the_callers_alone(capfd):
    with pytest.raises(KeyboardInterrupt), Remote("the echo", Echo, "") as remote:
        os.kill(remote._process.pid, signal.SIGINT)
        remote.ready()
        assert remote.call("say", "a")[0] == "a"
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    assert capfd.readouterr().err == ""


def test_close_ends_a_busy_process():
    remote = Remote("the echo", Echo, "")
    remote.ready()
    remote.ask("sleep")
    remote.close()
    assert not remote._process.is_alive()
