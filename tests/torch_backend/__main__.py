"""Single functions through `torch.compile(backend="tilec")` beside eager PyTorch: `make torch-functions`.

A line for every function, type and kind of sizes: the calls of its graphs, those that tilec runs, why not the others,
and what is wrong. The exit code is 1 where a call fails or a result differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import nullcontext

from tilec.api import compiling, worker
from tilec.spec.cpus import without_children
from tilec.torch_backend import backend
from torch_backend.function_judge import judged, share
from torch_backend.functions import FUNCTIONS

os.environ.setdefault("TILEC_WHILE_COMPILING", "wait")  # compiled code is judged, not what serves before


def main() -> int:
    """Run the functions named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions whose name contains one of these")
    parser.add_argument("--every", type=int, default=1, help="take one function of so many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one's number")
    parser.add_argument("--kinds", default="static,types,varies", help="static, types, varies")
    arguments = parser.parse_args()
    compiling._run = worker.build  # type: ignore[assignment]
    backend.compiler_started = lambda device: nullcontext()  # type: ignore[assignment]
    chosen = [name for name in FUNCTIONS if not arguments.names or any(each in name for each in arguments.names)]
    outcomes, wrong = [], 0
    with tempfile.TemporaryDirectory() as cache, without_children():
        for name in chosen[arguments.first :: arguments.every]:
            function = FUNCTIONS[name]
            kinds = [(function.types[0], False)] if "static" in arguments.kinds else []
            kinds += [(function.types[0], True)] if "varies" in arguments.kinds and not function.fixed else []
            kinds += [(dtype, False) for dtype in function.types[1:]] if "types" in arguments.kinds else []
            for dtype, varies in kinds:
                outcome = judged(function, dtype, varies, {"cache": cache})
                if outcome is None:
                    continue
                outcomes.append(outcome)
                wrong += bool(outcome.trouble)
                what = f"{name}, {str(dtype).removeprefix('torch.')}{', sizes that vary' if varies else ''}"
                kept = "; ".join(dict.fromkeys(outcome.kept))
                print(f"{outcome.native}/{outcome.calls} {what}{f' | {kept}' if kept else ''}", flush=True)
                if outcome.trouble:
                    print(f"  WRONG {outcome.trouble}", flush=True)
    print(f"{len(outcomes)} cases, {wrong} wrong, {share(outcomes):.1%} of the calls native in geometric mean")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
