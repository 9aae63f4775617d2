"""The registry, sizes, errors and files of the zoo."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tilec import zoo
from tilec.errors import TilecError, UsageError

NAMES = (
    "mobilenet-v2",
    "shufflenet-v2",
    "resnet-50",
    "vgg16",
    "unet",
    "bert-base",
    "gpt2",
    "vit-s32",
    "vit-b16",
    "swin-t",
    "mobilevit-s",
    "nafnet",
    "restormer",
    "bsrn",
    "conformer",
    "nerf-mlp",
    "llama-layer-prefill",
    "llama-layer-decode",
)


def _input_dims(model: onnx.ModelProto) -> list[list[int | str]]:
    return [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input]


def test_names_and_descriptions() -> None:
    assert zoo.names() == NAMES
    for name in NAMES:
        assert zoo.describe(name)
        assert "\n" not in zoo.describe(name)


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("mobilenet-v2", [[1, 3, 224, 224]]),
        ("nafnet", [[1, 3, 256, 256]]),
        ("swin-t", [[1, 3, 224, 224]]),
        ("mobilevit-s", [[1, 3, 256, 256]]),
        ("restormer", [[1, 3, 256, 256]]),
        ("bsrn", [[1, 3, 256, 256]]),
        ("conformer", [[1, 512, 512], [1, 512]]),
        ("unet", [[1, 3, 256, 256]]),
        ("nerf-mlp", [[259200, 64]]),
        ("llama-layer-prefill", [[1, 128, 2048]]),
        ("llama-layer-decode", [[1, 1, 2048], [1, 4, 511, 64], [1, 4, 511, 64]]),
    ],
)
def test_default_shapes(name: str, dims: list[list[int]]) -> None:
    assert _input_dims(zoo.build(name)) == dims


def test_batch_and_seq() -> None:
    assert _input_dims(zoo.build("shufflenet-v2", batch=3)) == [[3, 3, 224, 224]]
    assert _input_dims(zoo.build("nerf-mlp", batch=2, seq=5)) == [[10, 64]]
    assert _input_dims(zoo.build("unet", seq=8192)) == [[1, 3, 8192, 8192]]
    assert _input_dims(zoo.build("restormer", seq=64)) == [[1, 3, 64, 64]]
    decode = zoo.build("llama-layer-decode", batch=2, seq=9)
    assert _input_dims(decode) == [[2, 1, 2048], [2, 4, 8, 64], [2, 4, 8, 64]]
    assert [d.dim_value for d in decode.graph.output[1].type.tensor_type.shape.dim] == [2, 4, 9, 64]


@pytest.mark.parametrize("name", ["unet", "nafnet", "restormer"])
def test_images_have_a_height_and_a_width_of_their_own(name: str) -> None:
    model = zoo.build(name, dynamic=True)
    assert _input_dims(model) == [["batch", 3, "height", "width"]]
    assert [d.dim_param for d in model.graph.output[0].type.tensor_type.shape.dim][2:] == ["height", "width"]


def test_seed_decides_the_weights_and_nothing_else_does() -> None:
    def weights(**options: Any) -> dict[str, np.ndarray[Any, Any]]:
        model = zoo.build("nerf-mlp", seq=1, **options)
        return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}

    fused = weights()
    for name, value in weights(form="decomposed", dynamic=False, batch=4).items():
        np.testing.assert_array_equal(fused[name], value.T)
    assert not np.array_equal(fused["layers.0.weight"], weights(seed=1)["layers.0.weight"])
    assert not np.array_equal(fused["layers.0.weight"], fused["layers.1.weight"])


def test_weights_are_raw_data() -> None:
    model = zoo.build("nafnet")
    assert all(tensor.raw_data and not tensor.float_data for tensor in model.graph.initializer)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"name": "bert_base"}, "no model 'bert_base'", "Did you mean 'bert-base'?"),
        ({"name": "alexnet"}, "no model 'alexnet'", "mobilenet-v2, shufflenet-v2"),
        ({"name": "nafnet", "form": "fuse"}, "no form 'fuse'", "did you mean fused?"),
        ({"name": "bsrn", "seq": 4}, "no sequence", "bert-base"),
        ({"name": "nafnet", "batch": 0}, "batch 0 is less than 1", "1 or more"),
        ({"name": "bert-base", "seq": 0}, "seq 0 is less than 1", "1 or more"),
        ({"name": "bert-base", "seq": 513}, "seq 513 is more than 512", "tables"),
        ({"name": "gpt2", "seq": 1025}, "seq 1025 is more than 1024", "tables"),
        ({"name": "bert-base", "seq": 8, "dynamic": True}, "symbols for batch and sequence", "--shape"),
        ({"name": "nafnet", "batch": 2, "dynamic": True}, "symbols for batch and sequence", "--shape"),
        ({"name": "unet", "seq": 100}, "seq 100 is no multiple of 16", "96 or 112"),
        ({"name": "restormer", "seq": 100}, "seq 100 is no multiple of 8", "96 or 104"),
        ({"name": "unet", "seq": 5}, "seq 5 is no multiple of 16", "16 or 32"),
        ({"name": "vgg16", "seq": 223}, "seq 223 is less than 224", "leave a pixel"),
        ({"name": "nafnet", "seed": -1}, "seed -1 is negative", "0 or more"),
    ],
)
def test_errors_name_the_remedy(options: dict[str, Any], message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        zoo.export(path=tmp_path / "model.onnx", **options)
    assert caught.value.exit_code == 2
    assert message in str(caught.value)
    assert hint in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_export_writes_one_complete_file(tmp_path: Path) -> None:
    path = zoo.export("nafnet", tmp_path / "nafnet.onnx", form="decomposed")
    assert list(tmp_path.iterdir()) == [path]
    first = path.read_bytes()
    assert zoo.export("nafnet", str(path), form="decomposed").read_bytes() == first
    assert onnx.load(path) == zoo.build("nafnet", form="decomposed")


def test_export_into_a_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TilecError):
        zoo.export("nerf-mlp", tmp_path / "file" / "model.onnx")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_listing_models_imports_neither_onnx_nor_numpy() -> None:
    check = (
        "import sys; from tilec import zoo; [zoo.describe(n) for n in zoo.names()];"
        "sys.exit(bool({'onnx', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
