"""Decoders of one layer, written node by node: the forms that exporters write, without the exporters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, WIDTH, HEADS, GROUPS, CHANNELS, BLOCK = 48, 32, 4, 2, 16, 16
POSITIONS = 64
CONTRIB = "com.microsoft"


class Writer:
    """Nodes and constants of a graph."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._generator = np.random.default_rng(0)

    def node(self, kind: str, inputs: str, outputs: str, **attributes: Any) -> None:
        """A node; `-` is an absent input."""
        names = ["" if name == "-" else name for name in inputs.split()]
        self.nodes.append(helper.make_node(kind, names, outputs.split(), **attributes))

    def constant(self, name: str, array: NDArray[Any]) -> None:
        self.constants.append(numpy_helper.from_array(array, name))

    def weight(self, name: str, *shape: int) -> None:
        self.constant(name, (self._generator.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def packed(self, name: str, rows: int, columns: int) -> None:
        """A weight of 4 bits in blocks: bytes and scales."""
        blocks = columns // BLOCK
        self.constant(name, self._generator.integers(0, 256, (rows, blocks, BLOCK // 2)).astype(np.uint8))
        scales = self._generator.uniform(0.5, 1.5, (rows, blocks)) / 4 / np.sqrt(columns)
        self.constant(f"{name}_scales", scales.astype(np.float32))

    def tables(self) -> None:
        """Cosines and sines of the positions."""
        angles = np.arange(POSITIONS)[:, None] / 100.0 ** (np.arange(CHANNELS // 2) * 2 / CHANNELS)
        self.constant("cos", np.cos(angles).astype(np.float32))
        self.constant("sin", np.sin(angles).astype(np.float32))

    def save(self, path: Path, extra: dict[str, tuple[int, list[int | str]]], opset: int, rows: int | str) -> Path:
        """Write the model, whose caches have so many rows; `extra` are inputs besides tokens and caches."""
        info = helper.make_tensor_value_info
        cache = ["batch", GROUPS, rows, CHANNELS]
        inputs = [info("input_ids", TensorProto.INT64, ["batch", "new"])]
        inputs += [info(name, kind, shape) for name, (kind, shape) in extra.items()]
        inputs += [info(f"past_key_values.0.{part}", TensorProto.FLOAT, cache) for part in ("key", "value")]
        names = ("logits", "present.0.key", "present.0.value")
        outputs = [onnx.ValueInfoProto(name=name) for name in names]
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.constants)
        imports = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
        path.write_bytes(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())
        return path


def grouped(path: Path, rows: str = "past", **attributes: Any) -> Path:
    """The form of onnxruntime-genai's builder: weights of 4 bits, the table of tokens too, GroupQueryAttention; `rows`
    is the name of the number of rows of caches."""
    w = Writer()
    sides = {"q": HEADS, "k": GROUPS, "v": GROUPS}
    w.packed("table", VOCABULARY, WIDTH)
    w.constant("flat", np.int64([VOCABULARY, WIDTH // 2]))
    w.node("Reshape", "table flat", "rows")
    w.node("GatherBlockQuantized", "rows input_ids table_scales", "x", domain=CONTRIB, bits=4, block_size=BLOCK)
    for side, heads in sides.items():
        w.packed(f"w{side}", heads * CHANNELS, WIDTH)
        _few_bits(w, f"x w{side}", side, heads * CHANNELS, WIDTH)
    w.constant("one", np.int64([1]))
    w.constant("second", np.int64(1))
    w.node("ReduceSum", "attention_mask one", "tokens", keepdims=1)
    w.node("Sub", "tokens one", "last_tokens")
    w.node("Cast", "last_tokens", "last", to=TensorProto.INT32)
    w.node("Shape", "attention_mask", "shape")
    w.node("Gather", "shape second", "all_tokens", axis=0)
    w.node("Cast", "all_tokens", "total", to=TensorProto.INT32)
    w.tables()
    w.node(
        "GroupQueryAttention",
        "q k v past_key_values.0.key past_key_values.0.value last total cos sin",
        "attended present.0.key present.0.value",
        **{"domain": CONTRIB, "num_heads": HEADS, "kv_num_heads": GROUPS, "do_rotary": 1, **attributes},
    )
    w.packed("wo", WIDTH, HEADS * CHANNELS)
    _few_bits(w, "attended wo", "o", WIDTH, HEADS * CHANNELS)
    w.weight("ones", WIDTH)
    w.node("SkipSimplifiedLayerNormalization", "x o ones", "y", domain=CONTRIB, epsilon=1e-6)
    _few_bits(w, "y table", "logits", VOCABULARY, WIDTH)
    return w.save(path, {"attention_mask": (TensorProto.INT64, ["batch", "total"])}, 21, rows)


def _few_bits(w: Writer, inputs: str, output: str, rows: int, columns: int) -> None:
    options = {"N": rows, "K": columns, "bits": 4, "block_size": BLOCK, "domain": CONTRIB}
    w.node("MatMulNBits", f"{inputs} {inputs.split()[1]}_scales", output, **options)


def standard(path: Path) -> Path:
    """ONNX's own operators of opset 23: RMSNormalization, RotaryEmbedding, Attention with past and present."""
    w = Writer()
    _projections(w)
    w.node(
        "Attention",
        "qr kr v - past_key_values.0.key past_key_values.0.value",
        "attended present.0.key present.0.value",
        is_causal=1,
        q_num_heads=HEADS,
        kv_num_heads=GROUPS,
    )
    _head(w, "attended")
    return w.save(path, {"position_ids": (TensorProto.INT64, ["batch", "new"])}, 23, "past")


def scattered(path: Path, capacity: int) -> Path:
    """Caches with room for all tokens: TensorScatter, and Attention with a mask of the tokens that there are."""
    w = Writer()
    _projections(w)
    w.constant("first_column", np.int64([0]))
    w.constant("one", np.int64([1]))
    w.constant("axis", np.int64([1]))
    w.node("Slice", "position_ids first_column one axis", "first")
    w.node("Squeeze", "first axis", "start")
    for side, part in (("kr", "key"), ("v", "value")):
        w.constant(f"split_{side}", np.int64([0, 0, GROUPS, CHANNELS]))
        w.node("Reshape", f"{side} split_{side}", f"{side}_split")
        w.node("Transpose", f"{side}_split", f"{side}_heads", perm=[0, 2, 1, 3])
        w.node("TensorScatter", f"past_key_values.0.{part} {side}_heads start", f"present.0.{part}", axis=2)
    w.constant("split_q", np.int64([0, 0, HEADS, CHANNELS]))
    w.node("Reshape", "qr split_q", "q_split")
    w.node("Transpose", "q_split", "q_heads", perm=[0, 2, 1, 3])
    w.constant("places", np.arange(capacity))
    w.constant("last_axis", np.int64([-1]))
    w.constant("heads_axis", np.int64([1]))
    w.node("Unsqueeze", "position_ids last_axis", "place")
    w.node("LessOrEqual", "places place", "seen")
    w.node("Unsqueeze", "seen heads_axis", "mask")
    w.node("Attention", "q_heads present.0.key present.0.value mask", "in_heads")
    w.node("Transpose", "in_heads", "turned", perm=[0, 2, 1, 3])
    w.constant("join", np.int64([0, 0, -1]))
    w.node("Reshape", "turned join", "attended")
    _head(w, "attended")
    return w.save(path, {"position_ids": (TensorProto.INT64, ["batch", "new"])}, 24, capacity)


def _projections(w: Writer) -> None:
    w.weight("table", VOCABULARY, WIDTH)
    w.node("Gather", "table input_ids", "x", axis=0)
    w.weight("ones", WIDTH)
    w.node("RMSNormalization", "x ones", "normal", axis=-1)
    for side, heads in {"q": HEADS, "k": GROUPS, "v": GROUPS}.items():
        w.weight(f"w{side}", WIDTH, heads * CHANNELS)
        w.node("MatMul", f"normal w{side}", side)
    w.tables()
    for side, heads in {"q": HEADS, "k": GROUPS}.items():
        w.node("RotaryEmbedding", f"{side} cos sin position_ids", f"{side}r", num_heads=heads)


def _head(w: Writer, attended: str) -> None:
    w.weight("wo", HEADS * CHANNELS, WIDTH)
    w.node("MatMul", f"{attended} wo", "o")
    w.node("Add", "x o", "y")
    w.weight("head", WIDTH, VOCABULARY)
    w.node("MatMul", "y head", "logits")


def merged(path: Path, taken: bool | None = None) -> Path:
    """Two branches under an If, as optimum merges a decoder that reads caches and one that has none yet; the input
    `use_cache_branch` chooses, or has the value `taken`."""
    ends = ("logits", "present.0.key", "present.0.value")
    branches = {}
    for kind in ("then", "else"):
        w = Writer()
        _projections(w)
        for side in ("kr", "v"):
            w.constant(f"split_{side}", np.int64([0, 0, GROUPS, CHANNELS]))
            w.node("Reshape", f"{side} split_{side}", f"{side}_split")
            w.node("Transpose", f"{side}_split", f"{side}_heads", perm=[0, 2, 1, 3])
        past = "past_key_values.0.key past_key_values.0.value"
        heads = {"is_causal": 1, "q_num_heads": HEADS, "kv_num_heads": GROUPS}
        if kind == "then":
            w.node("Attention", f"qr kr v - {past}", "attended present.0.key present.0.value", **heads)
        else:
            w.node("Attention", "qr kr v", "attended", **heads)
            w.node("Identity", "kr_heads", "present.0.key")
            w.node("Identity", "v_heads", "present.0.value")
        _head(w, "attended")
        for node in w.nodes:  # names of branches are their own
            node.input[:] = [_inside(kind, name) for name in node.input]
            node.output[:] = [_inside(kind, name) for name in node.output]
        for constant in w.constants:
            constant.name = _inside(kind, constant.name)
        results = [onnx.ValueInfoProto(name=_inside(kind, name)) for name in ends]
        branches[kind] = helper.make_graph(w.nodes, kind, [], results, w.constants)
    whole = Writer()
    branch = {f"{kind}_branch": graph for kind, graph in branches.items()}
    whole.node("If", "use_cache_branch", " ".join(ends), **branch)
    extra = {"position_ids": (TensorProto.INT64, ["batch", "new"]), "use_cache_branch": (TensorProto.BOOL, [1])}
    if taken is not None:
        whole.constant("use_cache_branch", np.array([taken]))
    return whole.save(path, extra, 23, "past")


def _inside(kind: str, name: str) -> str:
    given = ("", "input_ids", "position_ids", "past_key_values.0.key", "past_key_values.0.value")
    return name if name in given else f"{kind}/{name}"
