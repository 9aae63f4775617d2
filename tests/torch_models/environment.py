"""The environment in which models of packages run: that of the checkout, with their packages beside it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PACKAGES = ("torchvision==0.29.1", "timm==1.0.31", "transformers==5.24.0", "torchao==0.18.0", "onnxscript==0.7.2")
"""Those that match the PyTorch that `pip install 'tilec[torch]'` brings; onnxscript is its exporter's to ONNX."""


def interpreter() -> Path:
    """The Python of that environment, which is made when it is missing. It sees the packages of this one."""
    folder = ROOT / "build" / "torch-models-venv"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.is_file() or ready.read_text() != "\n".join(PACKAGES):
        if not ready.is_file():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        outer = folder / "lib" / version / "site-packages" / "checkout.pth"
        outer.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True
        )
        ready.write_text("\n".join(PACKAGES))
    return python
