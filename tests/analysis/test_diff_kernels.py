"""The diff of kernels: steps by what they start."""

from copy import deepcopy

from tilec.analysis.diff_kernels import diff_kernels
from tilec.report.diff_json import diff_to_json
from tilec.report.diff_text import diff_text

BODY = {
    "name": "net",
    "device": "host",
    "arena": {"bytes": 4096, "offsets": {"h": 0}},
    "constants": {"w": {"file": "w.bin", "offset": 0, "size": 64}},
    "programs": {
        "h": {"file": "programs/matmul_1.json", "kernel": "matmul_1", "sha256": "a"},
        "y": {"file": "programs/softmax_2.json", "kernel": "softmax_2", "sha256": "b"},
    },
    "runtime": {
        "scratch_bytes": 512,
        "threads": 2,
        "inputs": [{"name": "x", "shape": [4, 16], "ttype": "f32"}],
        "outputs": [{"name": "y", "shape": [4, 8], "ttype": "f32"}],
    },
    "steps": [
        {"group": "h", "kernel": "matmul_1", "tensors": ["x", "w", "h"]},
        {"group": "y", "kernel": "softmax_2", "tensors": ["h", "y"]},
    ],
}


def other() -> dict:  # type: ignore[type-arg]
    return deepcopy(BODY)


def test_kernels_do_not_differ_from_themselves_under_other_names() -> None:
    again = other()
    again["steps"][0] = {"group": "k", "kernel": "matmul_1", "tensors": ["x", "w", "k"]}
    again["programs"]["k"] = {**again["programs"].pop("h"), "sha256": "names"}
    assert diff_kernels(BODY, BODY).empty
    assert diff_text(diff_kernels(BODY, again)) == "no changes: net on host, 2 steps\n"


def test_a_step_that_starts_another_kernel() -> None:
    again = other()
    again["steps"][1]["kernel"] = "softmax_3"
    again["arena"]["bytes"] = 8192
    again["runtime"]["threads"] = 4
    found = diff_kernels(BODY, again)
    (change,) = found.groups
    assert (change.kinds, change.before, change.after) == (("other kernel",), ("y",), ("y",))
    assert (change.changes[0].before, change.changes[0].after) == (["softmax_2"], ["softmax_3"])
    assert diff_to_json(found)["totals"]["arena"] == {"before": 4096, "after": 8192}
    assert [(each.kind, each.before, each.after) for each in found.changes] == [("threads", 2, 4)]
    assert found.unchanged == 1


def test_steps_that_come_and_go() -> None:
    longer = other()
    longer["steps"].append({"call": "cluster.onnx"})
    assert [change.kinds for change in diff_kernels(BODY, longer).groups] == [("added",)]
    assert [change.kinds for change in diff_kernels(longer, BODY).groups] == [("removed",)]
    assert diff_to_json(diff_kernels(BODY, longer))["totals"]["calls"] == {"before": 0, "after": 1}


def test_the_same_kernel_lowered_otherwise() -> None:
    again = other()
    again["programs"]["y"]["sha256"] = "c"
    (change,) = diff_kernels(BODY, again).groups
    assert (change.kinds, change.changes[0].kind) == (("rewritten",), "program")


def test_a_device_without_code() -> None:
    again = other()
    del again["runtime"]
    found = diff_kernels(BODY, again)
    assert {(each.kind, each.before, each.after) for each in found.changes} >= {("runs here", "yes", "no")}
    assert diff_to_json(found)["totals"]["scratch"] == {"before": 512, "after": None}
