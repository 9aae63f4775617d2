"""The queue of a cache: orders by rank and age, failures and when they are tried again, damaged and foreign files."""

import json
import os
import time
from dataclasses import replace

import pytest

from tilec.background import Failure, Order, Queue
from tilec.background.status import Status, tell, told


def order(key, rank=0, **more):
    return Order(key * 64, f"{key}.onnx", ("true",), "", "", "/", rank=rank, **more)


def test_orders_come_by_rank_and_then_by_age(tmp_path):
    queue = Queue(tmp_path)
    for age, each in enumerate([order("a", 1), order("b"), order("c"), order("b")]):
        queue.add(each)
        path = queue.folder / each.name
        os.utime(path, ns=(0, min(path.stat().st_mtime_ns, age + 1)))
    assert [each.what for each in queue.waiting()] == ["b.onnx", "c.onnx", "a.onnx"]
    queue.begun(order("b"), 3)
    assert next((each.what, each.begun) for each in queue.waiting()) == ("b.onnx", 3)
    queue.remove(order("b"))
    assert not queue.has(order("b"))
    assert queue.has(order("c"))


def test_damaged_orders_are_none(tmp_path):
    queue = Queue(tmp_path)
    queue.add(order("a"))
    (queue.folder / order("b").name).write_text("")
    (queue.folder / order("c").name).write_text((queue.folder / order("a").name).read_text())
    assert [each.what for each in queue.waiting()] == ["a.onnx"]
    assert not queue.has(order("b"))


def test_orders_of_another_version_stay_for_its_compiler(tmp_path):
    queue = Queue(tmp_path)
    queue.add(order("a"))
    path = queue.folder / order("b").name
    path.write_text(json.dumps({**json.loads((queue.folder / order("a").name).read_text()), "weight": 1}))
    assert [each.what for each in queue.waiting()] == ["a.onnx"]
    assert path.is_file()


def test_orders_whose_result_is_there_are_none(tmp_path):
    queue, done = Queue(tmp_path), replace(order("a"), result=str(tmp_path / "made"))
    queue.add(done)
    assert queue.waiting() == [done]
    (tmp_path / "made").mkdir()
    assert queue.waiting() == []
    assert not queue.has(done)


def test_nobody_else_may_write_orders(tmp_path):
    queue = Queue(tmp_path)
    queue.add(order("a"))
    assert queue.folder.stat().st_mode & 0o777 == 0o700
    elsewhere = Queue(tmp_path / "other")
    elsewhere.folder.parent.mkdir(parents=True)
    elsewhere.folder.symlink_to(queue.folder)
    if os.getuid() == 0:
        os.lchown(elsewhere.folder, 1, 1)
        assert elsewhere.waiting() == []
        with pytest.raises(PermissionError):
            elsewhere.add(order("b"))


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "queue").write_text("")
    with pytest.raises(FileExistsError):
        Queue(tmp_path).add(order("a"))
    assert Queue(tmp_path).waiting() == []
    assert not Queue(tmp_path).lives
    assert not Queue(tmp_path).stop()


def test_what_failed_is_tried_again_where_that_may_help_and_not_for_ever():
    def failure(kind, count=1):
        return Failure("a.onnx", kind, "no", None, None, 1000.0, count)

    assert failure("UnsupportedError").holds(1e12)
    assert failure("CompilerError").holds(1e12)
    assert failure("TilecError").holds(1100)
    assert not failure("TilecError").holds(1601)
    assert failure("TilecError", 2).holds(1601)
    assert failure("TilecError", 3).holds(1e12)
    assert not failure("TilecError").holds(900)


def test_failures_are_kept_until_they_are_forgotten(tmp_path):
    queue = Queue(tmp_path)
    queue.add(order("a"))
    failure = Failure("a.onnx", "UnsupportedError", "no", None, None, time.time())
    queue.fail(order("a"), failure)
    assert queue.waiting() == []
    assert queue.failures() == [queue.failure("a" * 64)] == [failure]
    queue.forget("a" * 64)
    assert queue.failures() == []


def test_a_status(tmp_path):
    status = Status("a.onnx", 10.0, "schedule", "fuse", 12, 35)
    assert status.text(18.2) == "schedule, fuse: 12 of 35, for 8 s"
    assert Status("a.onnx", 10.0).text(9.0) == "for 0 s"
    tell(tmp_path / "status.json", status)
    assert told(tmp_path / "status.json") == status
    tell(tmp_path / "no" / "status.json", status)
    assert told(tmp_path / "no") is None
