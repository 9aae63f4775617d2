"""The environment of its own that PyTorch's exporters run in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "exports"
"""Where exported files, feeds and builds lie; a file is exported once."""

PACKAGES = (
    "torch==2.14.1", "torchvision==0.29.1", "transformers==5.24.0", "timm==1.0.31", "onnx==1.23.2", "onnxscript==0.7.2",
)  # fmt: skip


def interpreter() -> Path:
    """The Python of that environment, which is made when it is missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = ROOT / "build" / "exports-venv"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True
        )
        ready.touch()
    return python
