"""Headless Chromium over its pipe of debugging commands: one process that looks at many pages, and misses no error."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60
"""Limit of waiting for one answer."""

HELPERS = """
globalThis.all = (chosen) => [...document.querySelectorAll(chosen)];
globalThis.one = (chosen) => document.querySelector(chosen);
globalThis.drawn = async () => { for (const _ of "123") await new Promise((done) => requestAnimationFrame(done)); };
globalThis.press = (key) => document.activeElement.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
globalThis.click = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
globalThis.overflow = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
"""
"""What scripts of tests may use: elements by selector, a wait until all is drawn, keys, clicks, pixels beyond the
window."""


class PageError(AssertionError):
    """An exception in a page, or something on its console."""


class Browser:
    """A browser with one tab."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "chromium.log"
        self._number = 0
        self._said: list[str] = []
        self._rest = b""
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        self.process = _started(folder, theirs_in, theirs_out, self._log)
        for each in (theirs_in, theirs_out):
            os.close(each)
        self._session = ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Profiler"):
            self.ask(f"{domain}.enable")
        self.ask("Page.addScriptToEvaluateOnNewDocument", source=HELPERS)
        self.ask("Profiler.startPreciseCoverage", callCount=True, detailed=False)

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        try:
            self.ask("Browser.close")
        except (OSError, PageError):
            os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        for each in (self._read, self._write):
            os.close(each)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command of Chromium's debugging protocol; what the page reports meanwhile is kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            told = self._message()
            if told.get("id") == self._number:
                if "error" in told:
                    raise PageError(f"{method}: {told['error']}")
                return dict(told["result"])

    def open(self, text: str, *, width: int = 1400, dark: bool = False, address: str = "") -> None:
        """Show a page in a window of some width. Raises PageError for anything that it reports while it starts."""
        file = self.folder / "page.html"
        file.write_text(text, encoding="utf-8")
        self._said.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url="about:blank")  # the same file with another fragment would not be loaded again
        self.ask("Page.navigate", url=file.as_uri() + address)
        self.run("if (document.readyState !== 'complete') await new Promise((done) => addEventListener('load', done));")

    def look(self, text: str, script: str, **shown: Any) -> Any:
        """What a script says of a page that is shown anew."""
        self.open(text, **shown)
        return self.run(script)

    def run(self, script: str) -> Any:
        """What the body of an async function returns in the page, when all is drawn.

        Raises PageError for an exception, and for anything that the page reports on its console.
        """
        body = f"(async () => {{ await drawn(); const found = await (async () => {{ {script} }})(); await drawn(); "
        told = self.ask(
            "Runtime.evaluate", expression=body + "return found; })()", awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            self._said.append(_exception(told["exceptionDetails"]))
        if self._said:
            raise PageError("\n".join(self._said))
        return told["result"].get("value")

    def functions(self) -> Iterator[tuple[str, int, int]]:
        """Every function of the scripts of the page: name, its first character in its script, number of calls."""
        address = (self.folder / "page.html").as_uri()
        for script in self.ask("Profiler.takePreciseCoverage")["result"]:
            if script["url"].startswith(address):
                for each in script["functions"]:
                    yield each["functionName"], each["ranges"][0]["startOffset"], each["ranges"][0]["count"]

    def _message(self) -> dict[str, Any]:
        """The next message; what concerns errors is noted."""
        while b"\0" not in self._rest:
            if not select([self._read], [], [], SECONDS)[0]:
                raise PageError(f"Chromium does not answer: {self._log.read_text()[-2000:]}")
            read = os.read(self._read, 1 << 20)
            if not read:
                raise PageError(f"Chromium ended: {self._log.read_text()[-2000:]}")
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        about = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self._said.append(_exception(about["exceptionDetails"]))
        elif told.get("method") == "Runtime.consoleAPICalled":
            self._said.append(f"console.{about['type']}: {about['args']}")
        elif told.get("method") == "Log.entryAdded":
            self._said.append(f"{about['entry']['level']}: {about['entry']['text']}")
        return told


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose files lie in `folder`."""
    opened = Browser(folder)
    try:
        yield opened
    finally:
        opened.close()


def chromium() -> str:
    """The path of Chromium. Raises AssertionError where none is installed: tests of pages are not left out."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found is not None, f"the report page is looked at in Chromium: install one of {', '.join(NAMES)}"
    return found


def _started(folder: Path, reads: int, writes: int, log: Path) -> int:
    """The process of Chromium, which reads commands from descriptor 3 and answers on 4."""
    command = [chromium(), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += ["--js-flags=--no-flush-bytecode"]  # code that is thrown away takes its count of calls with it
    command += ["--disable-ipc-flooding-protection"]  # a walk through a page opens groups faster than people do
    command += [f"--user-data-dir={folder / 'profile'}"]
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (reads, writes)]
    actions = [
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT, 0o600),
        (os.POSIX_SPAWN_DUP2, high[0], 3),
        (os.POSIX_SPAWN_DUP2, high[1], 4),
    ]
    try:
        return os.posix_spawn(command[0], command, {**os.environ, "HOME": str(folder)}, file_actions=actions)
    finally:
        for each in high:
            os.close(each)


def _exception(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details["text"])
