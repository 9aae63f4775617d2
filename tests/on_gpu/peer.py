"""`python -m tests.on_gpu.peer MODEL TYPE`: a model of torchvision or transformers by torch.compile with CUDA graphs.

Compiles and warms up, says `ready`, waits for a line, and prints the microseconds of a call among many as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median
from typing import Any

CALLS, ROUNDS = 20, 9


def main(name: str, ttype: str) -> int:
    """Measure."""
    import torch

    begin = time.monotonic()
    torch.backends.cudnn.allow_tf32 = False
    dtype = {"f16": torch.float16, "f32": torch.float32}[ttype]
    model, given = _model(name)
    model = model.eval().to("cuda", dtype)
    given = given.to("cuda") if given.dtype == torch.int64 else given.to("cuda", dtype)
    if given.dim() == 4 and ttype == "f16":
        model, given = model.to(memory_format=torch.channels_last), given.to(memory_format=torch.channels_last)
    compiled = torch.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(4):
            compiled(given)
        torch.cuda.synchronize()
        seconds = time.monotonic() - begin
        print("ready", flush=True)
        sys.stdin.readline()
        samples = [_replays(torch, compiled, given) for _ in range(ROUNDS)]
    print(json.dumps({"us": median(samples), "least": min(samples), "most": max(samples), "compile_s": seconds}))
    return 0


def _replays(torch: Any, model: Any, given: Any) -> float:
    model(given)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(CALLS):
        model(given)
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) * 1e3 / CALLS


def _model(name: str) -> tuple[Any, Any]:
    """(a model of random weights, its input)."""
    import torch

    if name in ("bert-base", "gpt2"):
        import transformers

        tokens = torch.randint(0, 30000, (1, 128))
        if name == "gpt2":
            return transformers.GPT2Model(transformers.GPT2Config(use_cache=False)), tokens
        return transformers.BertModel(transformers.BertConfig()), tokens
    import torchvision

    build = {"resnet-50": "resnet50", "mobilenet-v2": "mobilenet_v2", "vit-b16": "vit_b_16"}[name]
    return getattr(torchvision.models, build)(), torch.randn(1, 3, 224, 224)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
