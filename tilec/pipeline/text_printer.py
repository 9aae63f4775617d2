"""Kernels between passes, as text: all of one at first, then the lines that each pass alters."""

from collections.abc import Callable, Iterator
from difflib import SequenceMatcher


class TextPrinter:
    """Tells of kernels after every pass over them: called with the kernel, the pass and the kernel's text."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._before: dict[str, list[str]] = {}

    def __call__(self, kernel: str, step: str, text: str) -> None:
        """Say how many lines a kernel has, which went and which came."""
        lines = text.splitlines()
        before = self._before.get(kernel)
        unchanged = ", unchanged" if lines == before else ""
        head = f"{kernel} after {step}: {len(lines)} lines{unchanged}"
        self._tell("\n".join([head, *_changes(before or [], lines)]))
        self._before[kernel] = lines


def _changes(before: list[str], after: list[str]) -> Iterator[str]:
    for tag, i, j, k, n in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"  - {line}" for line in before[i:j])
            yield from (f"  + {line}" for line in after[k:n])
