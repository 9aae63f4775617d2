"""Work side by side: order, errors, and interrupts that do not wait for it."""

import signal
import subprocess
import sys
import threading

import pytest

from tilec.threads import map_side_by_side


@pytest.mark.parametrize("threads", [1, 3, 50])
def test_results_are_in_order(threads):
    assert map_side_by_side(lambda n: n * n, range(20), threads) == [n * n for n in range(20)]
    assert map_side_by_side(str, [], threads) == []


def test_no_more_threads_at_once_than_asked():
    at_once, most, lock = [0], [0], threading.Lock()
    gate = threading.Barrier(2)

    def work(_):
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        gate.wait(60)
        with lock:
            at_once[0] -= 1

    map_side_by_side(work, range(6), 2)
    assert most == [2]


def test_the_first_error_is_raised_and_nothing_begins_after_it():
    done = []

    def work(n):
        done.append(n)
        if n == 1:
            raise ValueError("one")

    with pytest.raises(ValueError, match="one"):
        map_side_by_side(work, range(9), 1)
    assert done == [0, 1]


PROGRAM = """
import ctypes, signal, sys
from tilec.threads import exit_process, map_side_by_side
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
def work(_):
    sys.stdout.write("begun\\n")  # at once: two threads write
    sys.stdout.flush()
    ctypes.CDLL(None).sleep(600)
try:
    map_side_by_side(work, [1, 2], 2)
except KeyboardInterrupt:
    exit_process(130)
except SystemExit as end:
    exit_process(end.code)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_process_though_a_call_is_under_way(number, code):
    running = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "begun\n"
    running.send_signal(number)
    assert running.wait(30) == code
