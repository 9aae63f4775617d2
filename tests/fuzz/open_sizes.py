"""`python -m fuzz.open_sizes N [SEED [FIRST]]`: N random models with open sizes, each compiled once and run at several
sizes; failures are kept."""

from __future__ import annotations

import resource
import sys
from collections import Counter
from pathlib import Path

import onnx
from onnx import numpy_helper

from fuzz.__main__ import FAILURES
from fuzz.check import text_of
from fuzz.draw_open import draw_open
from fuzz.open_model import OpenModel, check_open
from fuzz.reference import NoReference
from fuzz.sketch import Model
from fuzz.worker import Worker


def main(count: int, seed: int, first: int = 0) -> int:
    """Returns how many models failed."""
    ends: Counter[str] = Counter()
    sizes = refused = 0
    with Worker() as worker:
        for index in range(first, first + count):
            model = draw_open(seed, index)
            try:
                finding, left = check_open(model, worker)
            except NoReference as error:
                ends["no reference"] += 1
                print(f"no reference for model {index}: {str(error)[:200]}", flush=True)
                continue
            sizes, refused = sizes + len(model.tries), refused + left
            ends[finding.kind if finding else "right"] += 1
            if finding is not None:
                folder = FAILURES / f"open-{seed}-{index}"
                save_open(model, folder)
                text = text_of(Model(model.proto, model.tries[0]))
                (folder / "finding.txt").write_text(f"{finding.kind}: {finding.detail}\n\n{text}\n")
                print(f"FAILED {folder}\n{finding.kind}: {finding.detail[:400]}\n{text[:1500]}\n", flush=True)
            if (index - first) % 10 == 9:
                print(
                    f"{index - first + 1}/{count} models, {dict(ends)}, {refused} of {sizes} sizes refused", flush=True
                )
    used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{dict(ends)}, {refused} of {sizes} sizes refused, {used / max(1, count):.1f} CPU s a model")
    return sum(ends.values()) - ends["right"] - ends["no reference"]


def save_open(model: OpenModel, folder: Path) -> None:
    """Write a model and its inputs at each size in the layout of onnx's own tests."""
    for place, feeds in enumerate(model.tries):
        inside = folder / f"test_data_set_{place}"
        inside.mkdir(parents=True, exist_ok=True)
        for number, (name, array) in enumerate(feeds.items()):
            (inside / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())
    (folder / "model.onnx").write_bytes(model.proto.SerializeToString())


def read_open(folder: Path) -> OpenModel:
    """What `save_open` wrote; its sizes are counted."""
    proto = onnx.ModelProto.FromString((folder / "model.onnx").read_bytes())
    tries = []
    for inside in sorted(folder.glob("test_data_set_*")):
        tensors = [onnx.TensorProto.FromString(path.read_bytes()) for path in sorted(inside.glob("input_*.pb"))]
        tries.append({tensor.name: numpy_helper.to_array(tensor) for tensor in tensors})
    return OpenModel(proto, tries, {"try": list(range(len(tries)))})


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
