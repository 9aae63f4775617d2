"""beside: work in a copied process, whose end is never this one's."""

import os
import signal
import sys
import time
from unittest import mock

import pytest

from tilec.scheduler.parallel import child_process as module
from tilec.scheduler.parallel.child_process import in_child_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")


def test_the_result_of_another_process() -> None:
    known = {"a": 1}

    def work() -> tuple[int, dict[str, int]]:
        known["b"] = 2
        return os.getpid(), known

    with in_child_process(work) as answer:
        number, found = answer()
    assert number != os.getpid()
    assert found == {"a": 1, "b": 2}
    assert known == {"a": 1}, "the other process has its own"


@pytest.mark.parametrize("work", [lambda: 1 / 0, lambda: lambda: 1, lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_nothing_is_found_where_a_process_fails(work, capfd) -> None:
    with in_child_process(work) as answer:
        assert answer() is None
    assert capfd.readouterr() == ("", "")


def test_a_process_ends_with_the_block() -> None:
    made: list[int] = []

    def copied() -> int:
        made.append(original())
        return made[-1]

    begun, original = time.monotonic(), module._copied
    with (
        mock.patch.object(module, "_copied", copied),
        pytest.raises(KeyboardInterrupt),
        in_child_process(lambda: time.sleep(60)),
    ):
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 30
    with pytest.raises(ProcessLookupError):
        os.kill(made[0], 0)


def test_an_interrupt_is_for_the_one_that_waits() -> None:
    def work() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return "done"

    with in_child_process(work) as answer:
        assert answer() == "done"


def test_an_orphan_ends() -> None:
    reader, writer = os.pipe()

    def forever() -> None:
        os.write(writer, str(os.getpid()).encode() + b"\n")
        time.sleep(60)

    middle = os.fork()
    if middle == 0:
        with in_child_process(forever):
            os.read(reader, 1)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(middle, 0)
    os.close(writer)
    os.set_blocking(reader, False)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if os.read(reader, 100) == b"":
                return  # nobody holds the other end any more
        except BlockingIOError:
            time.sleep(0.05)
    pytest.fail("the process outlived the one that waited for it")


def test_a_process_that_cannot_be_copied_finds_nothing() -> None:
    with mock.patch.object(module, "_copied", side_effect=BlockingIOError), in_child_process(lambda: 1) as answer:
        assert answer() is None
