"""tilec in onnxruntime's place for programs that import it themselves, while tilec goes on using the package."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tilec
from api import models
from tilec import onnxruntime_package

RUN = """
    import sys, warnings
    import numpy as np
    options, providers = onnxruntime.SessionOptions(), ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(sys.argv[1], options, providers, cache=sys.argv[2])
    binding = onnxruntime.IOBinding(session)
    binding.bind_cpu_input("boxes", np.array([[[0, 0, 1, 1], [2, 2, 3, 3]]], np.float32))
    binding.bind_ortvalue_input("scores", onnxruntime.OrtValue.ortvalue_from_numpy(np.array([[[.9, .8]]], np.float32)))
    binding.bind_output("kept")
    session.run_with_iobinding(binding, onnxruntime.RunOptions())
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[0, 0, 0], [0, 0, 1]]
    try:
        session.run(None, {"boxes": 1})
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument as error:
        assert "boxes" in str(error), error
    else:
        raise AssertionError
    print("done")
"""

PROGRAM = """
    import importlib.util
    import onnxruntime
    from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
    from onnxruntime import get_available_providers, get_device
    from onnxruntime.capi import _pybind_state as C
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession as Same
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, NoSuchFile
    import onnxruntime.quantization
    import tilec
    assert InferenceSession is Same is tilec.InferenceSession
    assert onnxruntime.quantization.calibrate.onnxruntime is onnxruntime
    assert C.get_available_providers() == get_available_providers()
    assert "CPUExecutionProvider" in get_available_providers()
    assert onnxruntime.__version__ >= "1.16"
    assert importlib.util.find_spec("onnxruntime").name == "onnxruntime"
    assert C.OrtMemType and onnxruntime.OrtAllocatorType  # tilec has no part in these
    assert not hasattr(onnxruntime, "nothing_of_this_name")
    assert __name__ == "__main__" and len(sys.argv) == 3
    assert tilec.as_onnxruntime() is onnxruntime
"""


@pytest.fixture(scope="module")
def selection(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A model of which one node runs on onnxruntime, and the cache with it compiled: arguments of a program."""
    path = tmp_path_factory.mktemp("selection") / "selection.onnx"
    path.write_bytes(models.selection().SerializeToString())
    feeds = {"boxes": np.zeros((1, 2, 4), np.float32), "scores": np.zeros((1, 1, 2), np.float32)}
    tilec.InferenceSession(path, cache=cache).run(None, feeds)
    return [str(path), str(cache)]


def output(folder: Path, text: str, start: list[str], arguments: list[str]) -> str:
    """What a program prints, run from a folder of its own."""
    script = folder / "program.py"
    script.write_text("import sys\n" + text)
    command = [sys.executable, "-W", "ignore", *start, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=100, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tilec.__file__).parent.parent)}


def test_a_program_as_it_is(tmp_path: Path, selection: list[str]) -> None:
    text = textwrap.dedent(PROGRAM) + textwrap.dedent(RUN)
    assert output(tmp_path, text, ["-m", "tilec.as_onnxruntime"], selection) == "done\n"


@pytest.mark.slow_cases("")
@pytest.mark.parametrize("before", ["", "import onnxruntime as package; package.InferenceSession"])
def test_put_there_by_hand(tmp_path: Path, selection: list[str], before: str) -> None:
    text = f"""
    {before}
    import tilec
    sys.modules["onnxruntime"] = tilec
    from onnxruntime.capi._pybind_state import get_available_providers
    import onnxruntime
    assert onnxruntime is tilec
    """
    assert output(tmp_path, textwrap.dedent(text) + textwrap.dedent(RUN), [], selection) == "done\n"


def test_a_program_that_is_not_there() -> None:
    done = subprocess.run([sys.executable, "-m", "tilec.as_onnxruntime", "nowhere.py"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: nowhere.py: there is no such script")


def test_the_package_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    monkeypatch.setattr(onnxruntime_package, "_aside", {})
    assert onnxruntime_package.import_onnxruntime() is onnxruntime
    for name, module in list(sys.modules.items()):
        if name.startswith("onnxruntime."):
            monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "onnxruntime", tilec)
    package = onnxruntime_package.import_onnxruntime()
    assert package.InferenceSession is onnxruntime.InferenceSession
    assert onnxruntime_package.import_onnxruntime() is package
    assert sys.modules["onnxruntime"] is tilec
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError):
        onnxruntime_package.import_onnxruntime()
