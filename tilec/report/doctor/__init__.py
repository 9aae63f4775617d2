"""Health checks of this machine's installation; each finding has a fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tilec.errors import TilecError
from tilec.report.doctor.finding import Finding, Status, exit_code_of, invalid

__all__ = ["Check", "Finding", "Status", "examined", "exit_code_of", "invalid"]

Check = Callable[[], Iterable[Finding]]


def examined(checks: Iterable[tuple[str, Check]]) -> Iterator[Finding]:
    """The findings of all checks; a check that fails, or needs a missing package, is a finding itself."""
    for name, check in checks:
        try:
            yield from check()
        except TilecError as error:
            yield Finding(name, "error", str(error).splitlines()[0], error.hint or "", error.exit_code)
        except ImportError as error:
            fix = f"Install it: pip install '{error.name}'" if error.name else "Install tilec's requirements."
            yield Finding(name, "error", f"cannot be examined: {error}", fix)
