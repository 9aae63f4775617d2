"""`make kernel-texts ARGS="FOLDER [2-plan.json...]"`: the text of every GPU kernel of the golden plans and of others.

Texts that the folder does not have are written there; of those that it has, what differs is listed. A change that must
leave kernels as they are is checked against a folder that the commit before it wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.replay.plans import FOLDER as GOLDEN
from tilec.artifact.document import read_artifact
from tilec.codegen.gpu.printed_kernel import printed_kernel
from tilec.codegen.gpu.target import GpuTarget
from tilec.codegen.kernels import variants_alone
from tilec.errors import UnsupportedError
from tilec.ir.codec import plan_from_json
from tilec.ir.plan import Plan
from tilec.ir.text import text_of
from tilec.lower.lowering import lower
from tilec.spec.recipe import CodegenOptions
from tilec.spec.resolve import resolve_device

DEVICES = ("a100", "mi250")


def kernel_texts(plan: Plan) -> Iterator[tuple[str, str]]:
    """(kernel, its text with its launch) of a plan; the reason where a kernel has no text. Of groups that share one,
    whose texts have other names, the first is taken."""
    seen = set[str]()
    target = GpuTarget.of(resolve_device(plan.device), CodegenOptions())
    for group in plan.groups:
        for alone, _ in variants_alone(plan, group):
            (variant,) = alone.variants
            if variant.kernel in seen:
                continue
            seen.add(variant.kernel)
            program = lower(group, variant, plan)
            try:
                printed = printed_kernel(program, plan, alone, target)
            except UnsupportedError as error:
                yield variant.kernel, f"{error}\n"
                continue
            launch = printed.launch
            grid, shared = text_of(launch.grid), text_of(launch.shared_bytes)
            head = f"// {printed.symbol}: grid {grid}, {launch.threads} threads, {shared} bytes\n"
            yield variant.kernel, head + "".join(printed.functions.values()) + printed.text


def main(arguments: list[str]) -> int:
    """Returns the number of kernels whose text differs."""
    folder, *plans = map(Path, arguments)
    goldens = sorted(file for device in DEVICES for file in GOLDEN.glob(f"*.{device}.json"))
    same, new, other = 0, 0, list[Path]()
    for file in (*goldens, *plans):
        golden = file in goldens
        name = file.stem if golden else file.parent.name
        body = json.loads(file.read_text(encoding="utf-8")) if golden else read_artifact(file, "plan").body
        plan = plan_from_json(body, file.name)
        for kernel, text in kernel_texts(plan):
            kept = folder / name / f"{kernel}.cu"
            if not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(text, encoding="utf-8")
                new += 1
            elif kept.read_text(encoding="utf-8") != text:
                kept.with_suffix(".new").write_text(text, encoding="utf-8")
                other.append(kept)
            else:
                same += 1
    print(f"{same} equal, {new} new, {len(other)} differ", *other, sep="\n")
    return len(other)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
