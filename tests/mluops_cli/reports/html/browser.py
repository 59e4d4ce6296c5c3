"""A headless Chromium, driven through its driver's HTTP interface (WebDriver): no further package needed."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

BINARY = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--window-size=1280,900",
)  # fmt: skip


class Browser:
    """One session: open a page, find elements, click, type, run script, read logs."""

    def __init__(self, port: int, profile: Path) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)
        self._path = "/session"
        options = {"binary": BINARY, "args": [*_ARGUMENTS, f"--user-data-dir={profile}"]}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
        made = self._send("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._path = f"/session/{made['sessionId']}"

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        text = None if body is None else json.dumps(body)
        self._connection.request(method, self._path + path, text, {"Content-Type": "application/json"})
        value = json.loads(self._connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{value['error']}: {value['message']}")
        return value

    def open(self, page: Path, query: str = "") -> None:
        """Load a file; query is what follows its name in the address."""
        self._send("POST", "/url", {"url": f"{page.resolve().as_uri()}{query}"})

    def close(self) -> None:
        """End the session and its browser."""
        self._send("DELETE", "")
        self._connection.close()

    def find(self, selector: str) -> str:
        """The id of the first element that matches."""
        found: str = self._send("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT]
        return found

    def click(self, selector: str) -> None:
        """A real click in the element's middle."""
        self._send("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, text: str, selector: str | None = None) -> None:
        """Real keys, into an element or to whatever has the focus."""
        element = self._send("GET", "/element/active")[_ELEMENT] if selector is None else self.find(selector)
        self._send("POST", f"/element/{element}/value", {"text": text})

    def script(self, code: str) -> Any:
        """The value a function's body returns."""
        return self._send("POST", "/execute/sync", {"script": code, "args": []})

    def texts(self, selector: str) -> list[str]:
        """What each matching element shows."""
        listed = json.dumps(selector)
        texts: list[str] = self.script(
            f"return [...document.querySelectorAll({listed})].map((e) => e.textContent.trim())"
        )
        return texts

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was logged since it was last asked: browser (console) or performance (network)."""
        entries: list[dict[str, Any]] = self._send("POST", "/se/log", {"type": kind})
        return entries

    def devtools(self, command: str, **values: Any) -> Any:
        """A command of the Chrome DevTools protocol."""
        return self._send("POST", "/goog/cdp/execute", {"cmd": command, "params": values})

    def screenshot(self) -> bytes:
        """The window as PNG."""
        return base64.b64decode(self._send("GET", "/screenshot"))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, gone afterwards."""
    assert DRIVER
    driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert driver.stdout
        for line in driver.stdout:
            if match := re.search(r"started successfully on port (\d+)", line):
                break
        else:
            raise AssertionError("chromedriver did not start")
        made = Browser(int(match[1]), profile)
        try:
            yield made
        finally:
            made.close()
    finally:
        driver.terminate()
        driver.communicate(timeout=20)
