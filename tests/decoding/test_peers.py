"""Other runtimes as `generate` asks them: llama.cpp's tokens and times, models as OpenVINO reads them."""

import sys
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest

from tests.language_models.written import VOCABULARY, WIDTH, grouped
from tilec.decoding.peers import on_llama_cpp, on_openvino, peer_of
from tilec.decoding.peers.request import Request
from tilec.errors import TilecError, UnavailableError, UnsupportedError, UsageError


class Server:
    """Counts up from the last token of a prompt."""

    def __init__(self, parameters):
        self.parameters, self.asked = parameters, []

    def handle_completions(self, asked):
        self.asked.append(asked)
        if asked["prompt"] == [0]:
            return {"error": {"message": "no"}}
        made = [{"id": asked["prompt"][-1] + n} for n in range(1, asked["n_predict"] + 1)]
        told = {"choices": [{"logprobs": {"content": made}}]} if "logprobs" in asked else {}
        return {**told, "timings": {"prompt_ms": 20.0, "predicted_ms": 6.0}}


def _parameters():
    threads = (SimpleNamespace(n_threads=0), SimpleNamespace(n_threads=0))
    return SimpleNamespace(model=SimpleNamespace(path=""), cpuparams=threads[0], cpuparams_batch=threads[1])


PACKAGE = SimpleNamespace(Server=Server, CommonParams=_parameters)


def test_llama_cpp_tells_tokens_apart_from_times(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"")
    servers = []
    package = SimpleNamespace(Server=lambda p: servers.append(Server(p)) or servers[-1], CommonParams=_parameters)
    peer = on_llama_cpp.load(package, Request(Path("m.onnx"), None, 2, tmp_path / "m.gguf"))
    told = [peer([[5, 6]], 4) for _ in range(2)][-1]
    assert (told.tokens, told.first, told.decode) == ([7, 8, 9, 10], 0.02, pytest.approx(500.0))
    (server,) = servers
    assert ["logprobs" in asked for asked in server.asked] == [True, False, False], "probabilities take time"
    assert (server.parameters.n_ctx, server.parameters.cpuparams.n_threads) == (6, 2)
    with pytest.raises(TilecError, match="cannot run the model: {'message': 'no'}"):
        peer([[0]], 1)
    with pytest.raises(UnsupportedError, match="one prompt at a time"):
        peer([[1], [2]], 1)
    with pytest.raises(UsageError, match="there is no such file"):
        on_llama_cpp.load(PACKAGE, Request(Path("m.onnx"), None, 2, tmp_path / "none.gguf"))


def test_a_runtime_that_is_not_installed_is_named_as_pip_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime_genai", None)
    with pytest.raises(UnavailableError) as refused:
        peer_of("genai", Path("m.onnx"), None, None)
    assert refused.value.hint == "Run `pip install onnxruntime-genai`."


def test_constants_that_are_reshaped_have_that_shape_where_openvino_reads_them(tmp_path):
    model = grouped(tmp_path / "m.onnx")
    proto = onnx.load(model)
    onnx.save_model(proto, model, save_as_external_data=True, location="m.data", size_threshold=64)
    (tmp_path / "copy").mkdir()
    path = on_openvino._readable(model, tmp_path / "copy")
    found = onnx.load(path, load_external_data=False)
    assert "Reshape" not in [node.op_type for node in found.graph.node]
    constants = {each.name: each for each in found.graph.initializer}
    assert [*constants["rows"].dims] == [VOCABULARY, WIDTH // 2] != [*constants["table"].dims]
    assert constants["rows"].external_data == constants["table"].external_data
    assert path.with_name("m.data").read_bytes() == (tmp_path / "m.data").read_bytes()
