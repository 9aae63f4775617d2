"""One library per model: object files in a static library (ar format), readable by ar, nm and objdump."""

from collections.abc import Iterable

from tilec.errors import ArtifactError

MAGIC = b"!<arch>\n"

INTERFACE = "interface"
"""The member of a library that holds the `interface` of the manifest that it was compiled for, as text."""

_HEADER = 60
_END = b"`\n"


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    """The archive of `(name, object file)` members in this order; the same members give the same bytes.

    Names go into the table of long names, so any name without a slash or newline will do.
    """
    listed = list(members)
    names = bytearray()
    parts = []
    for name, data in listed:
        parts.append(_header(f"/{len(names)}", len(data), "644") + _even(data))
        names += f"{name}/\n".encode()
    return MAGIC + _header("//", len(names)) + _even(bytes(names)) + b"".join(parts)


def unpack(data: bytes, place: str = "") -> list[tuple[str, bytes]]:
    """The `(name, object file)` members of an archive of `pack`. Raises ArtifactError when it is cut off."""
    members: list[tuple[str, bytes]] = []
    names = b""
    position = len(MAGIC)
    if not data.startswith(MAGIC):
        raise ArtifactError("not a library of object files", place or None, "Run `tilec codegen` again.")
    while position < len(data):
        header = data[position : position + _HEADER]
        if len(header) < _HEADER or not header.endswith(_END) or not header[48:58].strip().isdigit():
            raise ArtifactError("a damaged library of object files", place or None, "Run `tilec codegen` again.")
        size = int(header[48:58])
        content = data[position + _HEADER : position + _HEADER + size]
        if len(content) < size:
            raise ArtifactError("a library that was cut off", place or None, "Run `tilec codegen` again.")
        label = header[:16].strip()
        if label == b"//":
            names = content
        else:
            start = int(label[1:]) if label[1:].isdigit() else len(names)
            end = names.find(b"/\n", start)
            if end < 0:
                raise ArtifactError(
                    "a library with a nameless object file", place or None, "Run `tilec codegen` again."
                )
            members.append((names[start:end].decode(errors="replace"), content))
        position += _HEADER + size + size % 2
    return members


def _header(name: str, size: int, mode: str = "") -> bytes:
    """A member's header: name, then date, user, group and mode, all zero or empty, size."""
    owner = "0" if mode else ""
    return f"{name:<16}{owner:<12}{owner:<6}{owner:<6}{mode:<8}{size:<10}".encode() + _END


def _even(data: bytes) -> bytes:
    return data + b"\n" * (len(data) % 2)
