"""Candidate plans built on workers, so that a machine only times them (W40)."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.errors import TilecError, UnavailableError
from tilec.pipeline.workers import Workers
from tilec.progress import unseen

if TYPE_CHECKING:
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec
    from tilec.spec.recipe import CodegenOptions

log = logging.getLogger("tilec")


@dataclass(frozen=True)
class _Task:
    plan: Plan
    device: DeviceSpec
    options: CodegenOptions


def builds_on(
    workers: Workers, device: DeviceSpec, options: CodegenOptions
) -> Callable[[Sequence[Plan], Path], dict[int, Path]]:
    """A function that builds plans on workers into numbered folders; it returns those of the plans that were built."""

    def built(plans: Sequence[Plan], folder: Path) -> dict[int, Path]:
        folders: dict[int, Path] = {}
        for number, files in enumerate(workers(_built, [_Task(plan, device, options) for plan in plans], unseen)):
            if isinstance(files, str):
                log.info("candidate %d of %s cannot be built: %s", number, plans[number].name, files)
                continue
            folders[number] = folder / str(number)
            for name, data in files.items():
                (folders[number] / name).parent.mkdir(parents=True, exist_ok=True)
                (folders[number] / name).write_bytes(data)
        return folders

    return built


def _built(task: _Task) -> dict[str, bytes] | str:
    """The files of a built plan, or why it cannot be built. Raises UnavailableError where nothing can be."""
    from tilec.abi.manifest import FILE
    from tilec.artifact import Artifact
    from tilec.codegen.driver import codegen

    with tempfile.TemporaryDirectory(prefix="tilec-") as place:
        folder = Path(place)
        try:
            body = codegen(task.plan, task.device, task.options, folder=folder, cache=None, advance=unseen)
        except UnavailableError:
            raise
        except TilecError as error:
            return error.message
        except Exception as error:  # any failure concerns this candidate only
            return f"{type(error).__name__}: {error}"
        Artifact("kernels", {}, body).write(folder / FILE)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
