"""Artifact documents: the JSON that a stage writes, with a header of kind, format and inputs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilec.artifact.canonical import Json, pretty
from tilec.artifact.digest import digest_object
from tilec.artifact.store import write_text
from tilec.errors import ArtifactError, UsageError, unreadable

FORMAT = 1

WRITERS = {"graph": "import", "plan": "schedule", "kernels": "codegen", "report": "verify"}
"""Kind of artifact -> the stage that writes it."""


@dataclass(frozen=True)
class Artifact:
    """The output of a stage.

    `inputs` maps a role (model, device, recipe, graph, plan, kernels) to a sha256; `edited`: a person changed this
    artifact, or one before it, after a stage had written it; `body` is the stage's data.
    """

    kind: str
    inputs: Mapping[str, str]
    body: Mapping[str, Any]
    edited: bool = False

    @property
    def digest(self) -> str:
        """The sha256 by which the next stage identifies this artifact, independent of formatting."""
        return digest_object(self.document())

    def document(self) -> dict[str, Json]:
        """The whole JSON object, header included."""
        header: dict[str, Json] = {
            "kind": self.kind,
            "format": FORMAT,
            "inputs": dict(self.inputs),
            "sha256": digest_object(self.body),
        }
        if self.edited:
            header["edited"] = True
        return {"artifact": header, **self.body}

    def text(self) -> str:
        """The contents of the file, the same on any machine for the same inputs."""
        return pretty(self.document())

    def write(self, path: Path) -> None:
        """Write the artifact atomically. Raises TilecError that names the folder."""
        write_text(path, self.text())

    def require_inputs(self, current: Mapping[str, str], place: str) -> None:
        """Check that the inputs in `current` are those this artifact was made from.

        Raises ArtifactError with the roles that changed and the stage to run again.
        """
        changed = [role for role, digest in current.items() if self.inputs.get(role) not in (None, digest)]
        if changed:
            raise ArtifactError(
                f"made from another {' and another '.join(changed)}",
                place,
                f"Run `tilec {WRITERS[self.kind]}` again.",
            )


def read_artifact(path: Path, kind: str) -> Artifact:
    """Read an artifact of the given kind.

    Raises UsageError when there is no such file, ArtifactError when it is malformed, another kind or version.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(error, str(path), f"`tilec {WRITERS[kind]}` writes it.") from error
    except UnicodeDecodeError as error:
        raise ArtifactError("not JSON: the file is binary", str(path), f"`tilec {WRITERS[kind]}` writes it.") from error
    return parse_artifact(text, kind, str(path))


def parse_artifact(text: str, kind: str, place: str) -> Artifact:
    """The artifact in `text`; `place` is the file name used in errors. Raises ArtifactError."""
    again = f"Run `tilec {WRITERS[kind]}` again."
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ArtifactError(f"not JSON: {error.msg}", f"{place}:{error.lineno}:{error.colno}", again) from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"not JSON: {error}", place, again) from error
    header = document.pop("artifact", None) if isinstance(document, dict) else None
    if not isinstance(header, dict) or header.get("kind") not in tuple(WRITERS):
        raise ArtifactError("not a tilec artifact: it has no header", place, again)
    if header["kind"] != kind:
        raise ArtifactError(
            f"this is a {header['kind']}, a {kind} is needed",
            place,
            f"`tilec {WRITERS[kind]}` writes a {kind}.",
        )
    if header.get("format") != FORMAT:
        raise ArtifactError(f"written in format {header.get('format')}, this tilec reads format {FORMAT}", place, again)
    inputs = header.get("inputs")
    if not isinstance(inputs, dict) or not all(isinstance(digest, str) for digest in inputs.values()):
        raise ArtifactError("the header's `inputs` must map roles to sha256 digests", place, again)
    touched = header.get("sha256") != digest_object(document)
    return Artifact(kind, inputs, document, edited=touched or header.get("edited") is True)


def is_fresh(path: Path, kind: str, inputs: Mapping[str, str]) -> bool:
    """Whether `path` is an artifact of this kind and format made from exactly these inputs.

    An artifact edited by hand counts: the inputs decide, the edit is preserved.
    """
    if not path.is_file():
        return False
    try:
        return dict(read_artifact(path, kind).inputs) == dict(inputs)
    except (ArtifactError, UsageError):
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
