"""Folders as onnxruntime-genai's builder writes them, offline, from random models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from tests.language_models.families import VOCABULARY, causal_model

_INT4 = ("int4", "accuracy_level=4")
FORMS: dict[str, tuple[str, ...]] = {
    "int4": (*_INT4, "block_size=32"),
    "int4-exact": ("int4", "accuracy_level=0", "block_size=32"),
    "int4-128": (*_INT4, "block_size=128"),
    "int4-zeros": (*_INT4, "block_size=32", "is_symmetric=false"),
    "int4-shared": (*_INT4, "block_size=32", "shared_embeddings=true"),
    "int8": ("int8", "accuracy_level=4"),
    "fp32": ("fp32",),
    "fp16": ("fp16",),
    "cache8": ("int4", "accuracy_level=0", "block_size=32", "kv_cache_quant_scheme=int8_per_channel"),
}
"""Form -> precision and extra options of the builder."""


_LARGEST = {"k": 4.0, "v": 1.0}
"""Of keys and values of the random models, nearly."""


def _scales(source: Path) -> Path:
    """A file of the scales of a cache, one for each head and channel of each layer."""
    config = json.loads((source / "config.json").read_text())
    channels = config["num_key_value_heads"] * config["head_dim"]
    layers = range(config["num_hidden_layers"])
    scales = {f"{side}_scales": [[most / 128] * channels for _ in layers] for side, most in _LARGEST.items()}
    path = source / "scales.json"
    path.write_text(json.dumps({"scales": scales}))
    return path


def build(family: str, form: str, folder: Path) -> None:
    """Write the folder of a family in a form. Raises CalledProcessError."""
    source = folder.parent / "source" / family
    if not (source / "tokenizer.json").is_file():
        causal_model(family).save_pretrained(source)
        words = {f"<{number}>": number for number in range(VOCABULARY)}
        tokenizer = Tokenizer(models.BPE(vocab=words, merges=[], unk_token="<0>"))
        special = {"bos_token": "<1>", "eos_token": "<2>", "pad_token": "<0>"}
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(source)
    precision, *options = FORMS[form]
    if form.startswith("cache"):
        options.append(f"kv_cache_scale_file={_scales(source)}")
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(source), "-o", str(folder)]
    command += ["-p", precision, "-e", "cpu", "-c", str(folder.parent / "downloads")]
    subprocess.run([*command, *(["--extra_options", *options] if options else [])], check=True)
