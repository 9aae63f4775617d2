"""A page in headless Chromium, driven by a script in a page around it."""

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

AROUND = """<!doctype html>
<title>around</title>
<iframe src="%s" style="width: %dpx; height: 900px; border: 0"></iframe>
<script>
const later = (ms) => new Promise((done) => setTimeout(done, ms));
addEventListener("load", async () => {
  const frame = document.querySelector("iframe").contentWindow;
  const page = frame.document;
  const all = (chosen) => [...page.querySelectorAll(chosen)];
  const one = (chosen) => page.querySelector(chosen);
  const press = (key) => page.activeElement.dispatchEvent(new frame.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  let found;
  try {
    await later(300);
    found = await (async () => { %s })();
  } catch (error) {
    found = { error: String(error.stack) };
  }
  document.documentElement.dataset.found = JSON.stringify(found);
});
</script>
"""  # noqa: E501


def drive(text: str, script: str, folder: Path, width: int = 1400, address: str = ""):
    """What the body of an async function says of the page `text`: `page` is its document, `all` and `one` choose
    elements, `press` sends a key to what has the focus.  Fails for anything on the console."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    (folder / "page.html").write_text(text)
    around = folder / "around.html"
    around.write_text(AROUND % (f"page.html{address}", width, script))
    command = [CHROMIUM, "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run"]
    command += ["--allow-file-access-from-files", "--enable-logging=stderr", f"--user-data-dir={folder / 'profile'}"]
    command += ["--window-size=1500,1000", "--virtual-time-budget=9000", "--dump-dom", around.as_uri()]
    environment = {**os.environ, "HOME": str(folder)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert not re.findall(r"CONSOLE.*", ran.stderr)
    (found,) = re.findall(r'<html[^>]* data-found="([^"]*)"', ran.stdout)
    told = json.loads(unescape(found))
    assert not (isinstance(told, dict) and "error" in told), told
    return told
