"""The environment of its own in which PyTorch's exporter and onnxruntime-genai's builder run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "language-models"
"""Where models and builds lie; a model is written once."""

PACKAGES = ("torch==2.13.0", "transformers==5.24.0", "onnxruntime-genai==0.18.0", "onnx==1.23.2", "onnxscript==0.7.2")


def interpreter() -> Path:
    """The Python of that environment, which is made when it is missing."""
    folder = ROOT / "build" / "language-models-venv"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.is_file() or ready.read_text() != "\n".join(PACKAGES):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True
        )
        ready.write_text("\n".join(PACKAGES))
    return python
