"""What is put off begins with the first run, or after a while, and is left to others where a process ends before."""

import os
import threading
import time

import pytest

from tilec.api import errands
from tilec.api.errands import Gate, run_later
from tilec.api.request import Request

REQUEST = Request("m.onnx", "", "host", "cache")


@pytest.fixture
def patient(monkeypatch):
    """Gates open by nobody but their openers."""
    monkeypatch.setattr(errands, "PATIENCE", 3600.0)


def test_an_errand_begins_when_its_gate_opens(patient):
    gate, done = Gate(), threading.Event()
    run_later(gate, done.set, REQUEST)
    assert not done.wait(0.05)
    assert errands._errands.left() == [(REQUEST, ())]
    gate.open()
    assert done.wait(30)
    _settled()
    assert errands._errands.left() == []


def test_an_errand_begins_by_itself_after_a_while(monkeypatch):
    monkeypatch.setattr(errands, "PATIENCE", 0.01)
    done = threading.Event()
    run_later(Gate(), done.set)
    assert done.wait(30)


def test_one_waits_for_no_other(patient):
    done = threading.Event()
    behind, gate = Gate(), Gate()
    run_later(behind, lambda: None, REQUEST)
    run_later(gate, done.set)
    gate.open()
    assert done.wait(30)
    behind.open()
    _settled()


def test_a_copied_process_leaves_errands_to_the_one_it_was_copied_from(patient):
    gate = Gate()
    run_later(gate, lambda: None, REQUEST)
    child = os.fork()
    if child == 0:
        os._exit(len(errands._errands.left()))
    assert os.waitpid(child, 0)[1] == 0
    gate.open()
    _settled()


def _settled():
    end = time.monotonic() + 30
    while errands._errands._undone and time.monotonic() < end:
        time.sleep(0.01)
