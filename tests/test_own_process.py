"""Processes of tilec's own do not import PyTorch, which tvm_ffi would."""

import os
import subprocess
import sys

import pytest
from cli.models import mlp

from tilec import own_process


def test_the_command_line_imports_no_torch(tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError('PyTorch is imported')\n")
    model = mlp(tmp_path / "mlp.onnx")
    command = [sys.executable, "-m", "tilec", "compile", str(model), "-o", str(tmp_path / "mlp.tilec"), "-q"]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True)


@pytest.mark.parametrize("own", [True, False])
def test_imports_of_other_processes_find_it(tmp_path, monkeypatch, own):
    (tmp_path / "torch.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(own_process, "_own", own)
    if own:
        with own_process.without_torch(), pytest.raises(ImportError):
            import torch
    else:
        with own_process.without_torch():
            import torch
    import torch

    assert torch.__file__ == str(tmp_path / "torch.py")
    monkeypatch.delitem(sys.modules, "torch")


def test_matrix_products_of_its_numpy_have_one_thread():
    code = (
        "import os, sys; from tilec import own_process, verify; from tilec.verify import remote;"
        "assert 'numpy' not in sys.modules; own_process.begin(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    plain = {name: value for name, value in os.environ.items() if name not in own_process.BLAS_THREADS}
    for given, used in (({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")):
        done = subprocess.run([sys.executable, "-c", code], env={**plain, **given}, capture_output=True, check=True)
        assert done.stdout.decode().strip() == used


def test_its_arrays_reuse_the_memory_of_those_that_it_freed():
    code = (
        "import resource, sys; from tilec import own_process; sys.argv[1] == 'own' and own_process.begin();"
        "import numpy; faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt;"
        "made = lambda: [numpy.ones(1 << 17) for _ in range(20)] and None;"
        "made(); before = faults(); [made() for _ in range(5)]; print(faults() - before)"
    )
    own, other = (
        int(subprocess.run([sys.executable, "-c", code, kind], capture_output=True, check=True).stdout)
        for kind in ("own", "other")
    )
    assert own < 1000 < other  # of 5 times 20 arrays of 256 pages
