"""Compilations of a session: one at a time, needed ones first."""

import threading

from tilec.api.compile_queue import LATER, NEEDED, CompileQueue


def test_needed_work_comes_first_and_equal_work_in_turn():
    queue, done, gate, over = CompileQueue(), [], threading.Event(), threading.Event()
    queue.add(gate.wait)
    for name, rank in (("later 1", LATER), ("later 2", LATER), ("needed 1", NEEDED), ("needed 2", NEEDED)):
        queue.add(lambda name=name: done.append(name), rank)
    queue.add(over.set, LATER)
    gate.set()
    assert over.wait(60)
    assert done == ["needed 1", "needed 2", "later 1", "later 2"]


def test_work_on_this_thread_waits_for_the_one_that_runs():
    queue, gate, began, order = CompileQueue(), threading.Event(), threading.Event(), []

    def background():
        began.set()
        gate.wait(60)
        order.append("background")

    def here():
        with queue.turn():
            order.append("here")

    queue.add(background)
    assert began.wait(60)
    thread = threading.Thread(target=here)
    thread.start()
    assert not order
    gate.set()
    thread.join(60)
    assert order == ["background", "here"]


def test_the_queue_goes_on_after_it_was_empty():
    queue = CompileQueue()
    for _ in range(3):
        done = threading.Event()
        queue.add(done.set)
        assert done.wait(60)
