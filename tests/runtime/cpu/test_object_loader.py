"""Objects are linked through the object loader's C interface, beside its Python package or without it."""

import os
import subprocess
import sys

import pytest
from cli.models import mlp

from tilec.runtime.cpu import object_loader as module
from tilec.runtime.cpu.object_loader import LinkError, object_loader


def test_what_is_no_object_is_refused_in_the_loaders_words():
    with pytest.raises(LinkError, match="object"):
        object_loader().link([b"no object"])
    with pytest.raises(LinkError, match=r"no function tilec\.none"):
        object_loader().call("tilec.none")


def test_a_function_that_is_not_there_is_an_error():
    linked = object_loader().link([])
    with pytest.raises(LinkError, match="no function absent"):
        linked.function("absent")


@pytest.mark.parametrize("package", [module.LOADER, module.RUNTIME])
def test_without_a_package_there_is_no_loader(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=package):
        module._Loader()


SESSION = """
import sys, numpy as np, tilec
session = tilec.InferenceSession(sys.argv[1], device="avx2")
feeds = {port.name: np.ones([4 if isinstance(n, str) else n for n in port.shape], np.float32)
         for port in session.get_inputs()}
first = session.run(None, feeds)
assert not {"tvm", "tvm_ffi", "torch"} & set(sys.modules), "a session imports them"
import tvm_ffi_orcjit
assert tvm_ffi_orcjit.default_session().clear_free_slabs() >= 0
second = tilec.InferenceSession(sys.argv[1], device="avx2")
for found in (session.run(None, feeds), second.run(None, feeds)):
    assert all((a == b).all() for a, b in zip(first, found, strict=True))
"""


def test_a_session_imports_no_torch_and_leaves_tvm_ffi_as_it_is(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('PyTorch is imported')\n")  # tvm_ffi goes on without
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", SESSION, str(mlp(tmp_path / "mlp.onnx"))]
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
