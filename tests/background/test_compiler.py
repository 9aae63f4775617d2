"""The process behind a queue: what it runs, how it ends, what it remembers; commands of these tests are shells."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilec.background import Failure, Order, Queue, start
from tilec.background.compiler import Compiler
from tilec.background.priority import AUTOGROUP, LEAST
from tilec.background.start import _started


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A queue whose compiler ends as soon as there is nothing to do, and with the test at the latest."""
    monkeypatch.setattr("tilec.background.compiler.LINGER", 0.0)
    queue = Queue(tmp_path / "cache")
    yield queue
    queue.stop()


def order(queue, key, script, result="made", **more):
    """An order whose command runs a script; $0 is the compiler's process, $1 the file of the status."""
    place = str(queue.root / result) if result else ""
    return Order(key * 64, f"{key}.onnx", ("/bin/sh", "-c", script), "given\n", place, str(queue.root.parent), **more)


def said(kind, message):
    """The script of a command that tells an error."""
    return f"echo '{json.dumps({'kind': kind, 'message': message, 'place': None, 'hint': None})}'; exit 1"


def serve(queue):
    """Serve as the process does, in a copy of this one: it changes its priority, and that of its session."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            Compiler(queue).serve()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def until(holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    assert holds()


def test_orders_are_run_one_after_the_other(queue):
    queue.add(order(queue, "a", 'read x; echo "$x" >> log; sleep 0.1; echo a >> log; mkdir cache/a', "a"))
    queue.add(
        order(
            queue, "b", 'test "$TILEC_X" = 1 && test -z "$TILEC_Y" && echo b >> log', "", environment={"TILEC_X": "1"}
        )
    )
    queue.add(order(queue, "c", "echo c >> log", "."))  # there already
    os.environ["TILEC_Y"] = "2"
    try:
        serve(queue)
    finally:
        del os.environ["TILEC_Y"]
    assert (queue.root.parent / "log").read_text().split() == ["given", "a", "b"]
    assert queue.waiting() == queue.failures() == []


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        (said("UnsupportedError", "no"), "UnsupportedError", "no"),
        (said("TilecError", "disk"), "TilecError", "disk"),
        ("kill -SEGV $$", "CompilerError", "the compiler failed: it was ended by signal SIGSEGV"),
        ("kill -KILL $$", "TilecError", "the compiler failed: it was ended by signal SIGKILL"),
        ("echo ValueError: odd >&2; exit 1", "CompilerError", "the compiler failed: ValueError: odd"),
        ("echo MemoryError >&2; exit 1", "CompilerError", "MiB that it may take in the background"),
    ],
)
def test_how_a_command_failed_is_remembered(queue, script, kind, message):
    queue.add(order(queue, "a", script))
    serve(queue)
    assert queue.waiting() == []
    failure = queue.failure("a" * 64)
    assert (failure.kind, failure.what, failure.count) == (kind, "a.onnx", 1)
    assert failure.message.endswith(message)
    queue.add(order(queue, "a", script))
    serve(queue)
    assert queue.failure("a" * 64).count == 2


def test_what_the_order_was_about_is_gone(queue):
    queue.add(order(queue, "a", said("UsageError", "no such file")))
    serve(queue)
    assert queue.waiting() == queue.failures() == []


def test_a_program_that_is_gone(queue):
    queue.add(Order("a" * 64, "a.onnx", ("/no/such/program",), "", "", "/no/such/folder"))
    serve(queue)
    assert queue.failure("a" * 64).kind == "TilecError"


def test_success_after_a_failure_forgets_it(queue):
    queue._prepare()
    queue.fail(order(queue, "a", ""), Failure("a.onnx", "TilecError", "disk", None, None, 0.0))
    queue.add(order(queue, "a", "mkdir cache/made"))
    serve(queue)
    assert queue.failures() == []


def test_a_command_that_always_ends_the_machine_is_given_up(queue):
    queue.add(order(queue, "a", "touch run"))
    queue.begun(order(queue, "a", "touch run"), 20)
    serve(queue)
    assert not (queue.root.parent / "run").exists()
    assert queue.failure("a" * 64).lasts


def test_commands_give_way(queue):
    before = AUTOGROUP.read_text() if AUTOGROUP.exists() else ""
    queue.add(order(queue, "a", "ulimit -d > data; cat /proc/self/stat > stat; nice > nice", ""))
    serve(queue)
    place = queue.root.parent
    assert int((place / "nice").read_text()) >= 10
    assert (place / "stat").read_text().rpartition(")")[2].split()[38] == "5"  # the policy: SCHED_IDLE
    assert int((place / "data").read_text()) >= LEAST >> 10
    if AUTOGROUP.exists():
        assert AUTOGROUP.read_text() == before


def test_only_one_lives_and_it_outlives_who_started_it(queue):
    queue.add(order(queue, "a", "echo run >> log; sleep 0.5; mkdir cache/made"))
    program = (
        "import sys; from pathlib import Path; from tilec.background import Queue, start\n"
        "for _ in range(3): start(Queue(Path(sys.argv[1])))"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program, queue.root], check=True)
    until(lambda: (queue.root / "made").is_dir())
    until(lambda: not queue.waiting())
    assert (queue.root.parent / "log").read_text() == "run\n"
    assert queue.stop()
    assert not queue.lives
    assert queue.log.read_text() == ""


def test_stopping_ends_the_command_and_keeps_the_order(queue):
    queue.add(order(queue, "a", "trap 'echo ended >> log; exit 1' TERM; touch begun; while :; do sleep 0.05; done"))
    start(queue)
    until((queue.root.parent / "begun").exists)
    assert queue.status().what == "a.onnx"
    assert queue.stop()
    assert (queue.root.parent / "log").read_text() == "ended\n"
    assert [each.begun for each in queue.waiting()] == [0]
    assert queue.failures() == []
    assert queue.status() is None


def test_another_takes_the_place_of_one_that_was_killed(queue):
    queue.add(order(queue, "a", "echo $0 >> log; while test $(wc -l < log) = 1; do sleep 0.05; done; mkdir cache/made"))
    start(queue)
    log = queue.root.parent / "log"
    until(log.exists)
    os.kill(_started[-1].pid, signal.SIGKILL)
    until(lambda: not queue.lives)
    start(queue)
    until(lambda: (queue.root / "made").is_dir())
    assert len(set(log.read_text().split())) == 2


def test_a_cache_that_is_removed_ends_it(queue):
    queue.add(order(queue, "a", "touch begun; sleep 60", "made"))
    start(queue)
    until((queue.root.parent / "begun").exists)
    for path in queue.folder.iterdir():
        path.unlink()
    _started[-1].wait(20)


def test_without_locks_one_lives(queue, monkeypatch, tmp_path):
    """On a file system without locks the lock of this machine's temporary folder counts."""
    import errno
    import fcntl
    import tempfile

    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    flock = fcntl.flock

    def without(descriptor, how):
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).parent != tmp_path / "tmp":
            raise OSError(errno.ENOLCK, "No locks available")
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", without)
    assert not queue.lives
    with queue.held() as held:
        assert held
        assert queue.lives
        with queue.held() as second:
            assert not second
    assert not queue.lives
