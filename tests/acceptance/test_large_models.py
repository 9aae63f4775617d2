"""A model of 3 GB: weights in several files, one beyond 4 GiB; compiled and run within one and a half times of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

SIDE = 8192
LAYERS = 12
WEIGHTS = LAYERS * SIDE * SIDE * 4
LIMIT = 3 * WEIGHTS // 2 + 500 * 10**6

MEASURED = """
import json, resource, sys
from pathlib import Path

def peak():
    return 1024 * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

if sys.argv[1] == "compile":
    from tilec.cli.app import run
    try:
        run()
    except SystemExit as end:
        assert not end.code, end.code
else:
    import numpy
    import tilec
    session = tilec.load("out")
    x = numpy.ones((16, 8192), numpy.float32)
    assert numpy.isfinite(session.run({"x": x})["y"]).all()
print(json.dumps(peak()))
"""


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Path]:
    """Matrix products one after another; their weights are mostly holes in the files, which read as zeros."""
    folder = tmp_path / "model"
    folder.mkdir()
    random = np.random.default_rng(0)
    size = SIDE * SIDE * 4
    nodes, weights, ends = [], [], {}
    for layer in range(LAYERS):
        file = f"part{layer * 3 // LAYERS}.bin"
        offset = ends.get(file, 0) + (5 << 30 if layer == LAYERS - 1 else 0)
        ends[file] = offset + size
        tensor = onnx.TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[SIDE, SIDE])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", str(offset)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        weights.append(tensor)
        with open(folder / file, "ab") as data:
            data.truncate(ends[file])
        with open(folder / file, "r+b") as data:
            for row in range(0, SIDE, 128):
                data.seek(offset + row * SIDE * 4)
                data.write((random.standard_normal(SIDE) / 8).astype(np.float32).tobytes())
        last = layer == LAYERS - 1
        nodes.append(helper.make_node("MatMul", [f"h{layer}" if layer else "x", tensor.name], [f"m{layer}"]))
        nodes.append(helper.make_node("Relu", [f"m{layer}"], ["y" if last else f"h{layer + 1}"]))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, SIDE]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "large", ports[:1], ports[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    (folder / "model.onnx").write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    yield folder / "model.onnx"
    shutil.rmtree(tmp_path)  # gigabytes


def peak(folder: Path, *arguments: str) -> int:
    """Peak resident bytes of the command or of a process of its."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", MEASURED, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.slow
def test_three_gigabytes_compile_and_run_in_little_memory(model: Path) -> None:
    folder = model.parent.parent
    compiled = peak(folder, "compile", "model/model.onnx", "--device", "avx2", "-o", "out")
    assert compiled <= LIMIT, f"compile took {compiled >> 20} MiB, {LIMIT >> 20} are allowed"
    report = json.loads((folder / "out" / "4-report.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "pass"
    ran = peak(folder, "run")
    assert ran <= LIMIT, f"run took {ran >> 20} MiB, {LIMIT >> 20} are allowed"
    print(f"weights {WEIGHTS >> 20} MiB, compile {compiled >> 20} MiB, run {ran >> 20} MiB")
