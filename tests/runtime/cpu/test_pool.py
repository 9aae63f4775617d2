"""How many threads there are, when they sleep, what forks, signals and exits do: mostly in processes of their own."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cpu_models import chain, write_model
from tilec.abi import job_layout
from tilec.runtime import load

PRELUDE = """
import os, sys, threading, time
import numpy as np
from tilec.runtime import load
folder = sys.argv[1]
x = np.random.default_rng(1).standard_normal((32, 40), np.float32)
tasks = lambda: len(os.listdir("/proc/self/task"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    write_model(folder, chain(12, 32, 40, repeat=200))
    return folder


def start(folder, code, **options):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.getcwd(), **options}
    environment.pop("TILEC_THREADS", None)
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def run(folder, code, **options):
    process = start(folder, code, **options)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    return out.strip()


def test_as_many_workers_as_asked_however_many_callers(folder):
    """Eight threads call one session: bit-equal results, at most CPUs + 8 threads in the process."""
    out = run(
        folder,
        """
        before = tasks()
        session = load(folder, threads=2)
        expected = session.run({"x": x})["y"]
        assert tasks() == before + 1
        assert load(folder, threads=2).run({"x": x})["y"].tobytes() == expected.tobytes()
        assert tasks() == before + 1
        most, equal = [], []
        def call():
            for _ in range(30):
                equal.append(session.run({"x": x})["y"].tobytes() == expected.tobytes())
            most.append(tasks())
        callers = [threading.Thread(target=call) for _ in range(8)]
        [caller.start() for caller in callers]
        [caller.join() for caller in callers]
        print(all(equal), len(equal), max(most) <= before + 9)
        """,
    )
    assert out == "True 240 True"


def test_results_do_not_depend_on_the_number_of_threads(folder):
    code = """
    for threads in (1, 2, 3, 7):
        print(hash(load(folder, threads=threads).run({"x": x})["y"].tobytes()))
    """
    assert len(set(run(folder, code, PYTHONHASHSEED="0").split())) == 1


def test_idle_workers_use_no_time(folder):
    out = run(
        folder,
        """
        session = load(folder, threads=4)
        session.run({"x": x})
        time.sleep(0.05)
        start = time.process_time()
        time.sleep(0.5)
        print(time.process_time() - start)
        """,
    )
    assert float(out) < 0.05


def test_workers_may_run_on_every_cpu_unless_pinned(folder):
    out = run(
        folder,
        """
        def masks(pin):
            before = {thread.native_id for thread in threading.enumerate()}
            load(folder, threads=3, pin=pin).run({"x": x})
            time.sleep(0.05)
            workers = [t.native_id for t in threading.enumerate() if t.native_id not in before]
            return [len(os.sched_getaffinity(worker)) for worker in workers]
        print(masks(False) == [len(os.sched_getaffinity(0))] * 2, masks(True))
        """,
    )
    assert out == "True [1, 1]"


def test_neither_tvm_nor_a_compiler_is_needed(folder):
    out = run(
        folder,
        """
        sys.modules["tvm"] = None
        load(folder).run({"x": x})
        maps = open("/proc/self/maps").read()
        print("libtvm_compiler" in maps, "libtvm_runtime" in maps)
        """,
        PATH="/nonexistent",
    )
    assert out == "False False"


def test_a_forked_child_starts_its_own_workers(folder):
    """The parent has workers, one of its threads is inside a run while it forks, and the child runs and exits."""
    out = run(
        folder,
        """
        import warnings; warnings.simplefilter("ignore")
        session = load(folder, threads=2)
        expected = session.run({"x": x})["y"].tobytes()
        stop = threading.Event()
        def call():
            while not stop.is_set():
                session.run({"x": x})
        other = threading.Thread(target=call)
        other.start()
        codes = []
        for _ in range(1):
            child = os.fork()
            if child == 0:
                same = [session.run({"x": x})["y"].tobytes() == expected for _ in range(5)]
                sys.exit(0 if all(same) and tasks() == 2 else 1)
            codes.append(os.waitpid(child, 0)[1])
        stop.set()
        other.join()
        print(codes, session.run({"x": x})["y"].tobytes() == expected)
        """,
    )
    assert out == "[0] True"


def test_interrupt_ends_the_process(folder):
    process = start(
        folder,
        """
        session = load(folder, threads=2)
        print("ready", flush=True)
        try:
            while True:
                session.run({"x": x})
        except KeyboardInterrupt:
            session.run({"x": x})
            print("interrupted")
        """,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "interrupted\n", "")


def test_exit_during_a_run_of_another_thread(folder):
    out = run(
        folder,
        """
        session = load(folder, threads=2)
        def call():
            while True:
                session.run({"x": x})
        threading.Thread(target=call, daemon=True).start()
        time.sleep(0.1)
        print("bye")
        """,
    )
    assert out == "bye"


@pytest.mark.parametrize("begin", [lambda run: run.step(0, 0), lambda run: run.launch(0, None)], ids=["step", "launch"])
def test_helpers_that_are_still_leaving_are_waited_for(folder, begin):
    """The body of a loop is launched again and again: what a helper finds of the next step it must not take for the
    last one's, and the state of the job must not be set while it counts that helper."""
    run = load(folder, threads=2)._executor.take_run()
    words = run.jobs[0].view(np.int64)
    words[job_layout.JOB_STATE // 8] = 1
    steps = []
    run._library = SimpleNamespace(run=lambda _place: steps.append(int(words[job_layout.JOB_STATE // 8])))
    stepping = threading.Thread(target=begin, args=(run,))
    stepping.start()
    stepping.join(0.1)
    assert not steps
    words[job_layout.JOB_STATE // 8] = 0
    stepping.join(10)
    assert steps == [0]


def test_two_pools_work_side_by_side(folder):
    code = """
    two, three = load(folder, threads=2), load(folder, threads=3)
    expected = two.run({"x": x})["y"].tobytes()
    equal = []
    def call(session):
        for _ in range(50):
            equal.append(session.run({"x": x})["y"].tobytes() == expected)
    callers = [threading.Thread(target=call, args=(session,)) for session in (two, three, two, three)]
    [caller.start() for caller in callers]
    [caller.join() for caller in callers]
    print(all(equal), len(equal))
    """
    assert run(folder, code) == "True 200"


def test_code_and_memory_stay_until_the_last_helper_has_left(folder):
    """A helper that the system lets wait may still be inside when the caller has all results and drops the session."""
    session = load(folder, threads=2)
    session.run({"x": np.zeros((32, 40), np.float32)})
    (run,) = next(iter(session._executor._processes.values()))[1]
    while not run.idle:
        time.sleep(0)
    state, pool = run.jobs[0].view(np.int64), next(iter(session._executor._processes.values()))[0]
    gone = weakref.ref(run._library)
    state[job_layout.JOB_STATE // 8] = 1  # a helper is inside
    del session, run
    gc.collect()
    assert gone() is not None
    state[job_layout.JOB_STATE // 8] = 0
    pool._closed_block(0)
    gc.collect()
    assert gone() is None
