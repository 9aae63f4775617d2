"""The wheel holds devices, recipes, types and what a report page is made of, found without unpacking, anywhere."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

SCRIPT = """
import tilec
from tilec.report.html.page import page
from tilec.spec.resolve import packaged, recipe_source, resolve_device
from tilec.spec.types import resolve_type
assert len(page([])) > 50_000
assert ".whl" in tilec.__file__, tilec.__file__
print(*packaged("devices"), resolve_device("a100").cores, recipe_source("default").place, resolve_type("e3m1").bits)
"""


def test_names_resolve_in_a_zipped_install(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(wheel)},
        check=True,
        capture_output=True,
        text=True,
    )
    names = sorted(path.stem for path in (ROOT / "devices").glob("*.yaml"))
    assert done.stdout.split() == [*names, "108", "recipes/default.yaml", "5"]
