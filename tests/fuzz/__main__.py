"""`python -m fuzz N [SEED]`: N random models against onnxruntime and through verify; failures are reduced and kept."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fuzz.check import check, reduced, save, text_of
from fuzz.draw import draw, refused
from fuzz.reference import NoReference
from fuzz.sketch import Model
from fuzz.worker import Worker

FAILURES = Path(__file__).parent / "failures"


def main(count: int, seed: int, first: int = 0, draw: Callable[[int, int], Model] = draw) -> int:
    """Returns how many models failed."""
    begin, failed, nodes = time.monotonic(), 0, 0
    operators: Counter[str] = Counter()
    with Worker() as worker:
        for index in range(first, first + count):
            model = draw(seed, index)
            nodes += len(model.proto.graph.node)
            operators.update(node.op_type for node in model.proto.graph.node)
            try:
                finding = check(model, worker)
            except NoReference as error:
                print(f"no reference for model {index}: {error}", flush=True)
                continue
            if finding is not None:
                failed += 1
                small, finding = reduced(model, finding, worker)
                folder = FAILURES / f"{seed}-{index}"
                save(small, folder)
                (folder / "finding.txt").write_text(f"{finding.kind}: {finding.detail}\n\n{text_of(small)}\n")
                print(f"FAILED {folder}\n{finding.kind}: {finding.detail[:400]}\n{text_of(small)[:1500]}\n", flush=True)
            done = index - first + 1
            if done % 20 == 0 or done == count:
                rate = done / (time.monotonic() - begin)
                print(f"{done}/{count} models, {nodes} nodes, {failed} failed, {rate:.1f} models/s", flush=True)
    print("operators:", " ".join(f"{k}:{v}" for k, v in sorted(operators.items())))
    if refused:
        print("refused:", " ".join(f"{k}:{v}" for k, v in sorted(refused.items())))
    return failed


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 1))
