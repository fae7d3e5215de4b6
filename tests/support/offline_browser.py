"""A headless Chromium, driven over its own debugging pipe, with no network to reach.

The browser runs in a network namespace of its own where the machine allows one; in any case every name
resolves to nothing, and every request that leaves a page is on record.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DEADLINE_S = 120.0


def find_chromium() -> str:
    """Return the browser; where there is none, skip, or fail when a missing tool must not go unnoticed."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None and sys.platform == "linux" and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "chromium"],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False,
        )  # fmt: skip
        found = shutil.which("chromium")
    if found is None:
        reason = "no Chromium here: install the package `chromium`"
        if os.environ.get("ROUNDKIT_CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Browser:
    """One headless browser with one page at a time."""

    def __init__(self, process: subprocess.Popen[bytes], reading: int, writing: int) -> None:
        self._process = process
        self._reading = os.fdopen(reading, "rb", buffering=0)
        self._writing = os.fdopen(writing, "wb", buffering=0)
        self._number = 0
        self._waiting = b""
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._writing.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._waiting:
            piece = self._reading.read(1 << 16)
            if not piece:
                raise RuntimeError("the browser ended")
            self._waiting += piece
        message, _, self._waiting = self._waiting.partition(b"\0")
        return dict(json.loads(message))

    def open(
        self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = "screen"
    ) -> Page:
        """Open a file, and wait until every chart on it is drawn or has failed."""
        self._session = None
        self._events.clear()
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
            self.send(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme, still])
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip
        self.send("Page.navigate", url=page.resolve().as_uri())
        opened = Page(self)
        opened.wait_for(
            "document.readyState === 'complete' && [...document.querySelectorAll('.rk-chart')]"
            ".every(place => place.querySelector('svg') || place.classList.contains('rk-failed'))"
        )
        return opened

    def drain(self) -> list[dict[str, Any]]:
        """Return every event so far."""
        self.send("Runtime.evaluate", expression="1")
        return list(self._events)


class Page:
    """What a reader sees of one page, and what it tried to do."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.browser.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression in the page is true."""
        ends = time.monotonic() + _DEADLINE_S
        while not self.run(expression):
            if time.monotonic() > ends:
                raise TimeoutError(f"never came true: {expression}")
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        """Press and release one key."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.browser.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )  # fmt: skip

    def requests(self) -> list[str]:
        """Return the address of everything that the page asked for."""
        sent = [event for event in self.browser.drain() if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        """Return errors and warnings of the console, uncaught exceptions, and violations of the policy."""
        found = []
        for event in self.browser.drain():
            parameters = event.get("params", {})
            match event["method"]:
                case "Log.entryAdded" if parameters["entry"]["level"] in {"error", "warning"}:
                    found.append(parameters["entry"]["text"])
                case "Runtime.exceptionThrown":
                    found.append(str(parameters["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if parameters["type"] in {"error", "warning", "assert"}:
                    found.append(str([part.get("value") for part in parameters["args"]]))
        return found

    def accessibility(self) -> list[tuple[str, str]]:
        """Return role and name of every node of the accessibility tree that is not ignored."""
        nodes = self.browser.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (str(node["role"]["value"]), str(node.get("name", {}).get("value", "")))
            for node in nodes
            if not node["ignored"]
        ]

    def picture(self, target: Path, *, whole: bool = True) -> Path:
        """Save a PNG of the page, as far down as it goes."""
        size = self.browser.send("Page.getLayoutMetrics")["cssContentSize"]
        options: dict[str, Any] = {"format": "png"}
        if whole:
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
            options |= {"clip": clip, "captureBeyondViewport": True}
        target.write_bytes(base64.b64decode(self.browser.send("Page.captureScreenshot", **options)["data"]))
        return target


@contextmanager
def headless_browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    program = find_chromium()
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()
    words = [
        program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-sandbox",
        "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9",
    ]  # fmt: skip

    def place() -> None:
        # The protocol's pipes are always descriptors 3 and 4.
        ends = [os.dup2(end, 100 + number) for number, end in enumerate((to_browser, from_browser))]
        for number, end in enumerate(ends, start=3):
            os.dup2(end, number, inheritable=True)

    process = subprocess.Popen(
        [*_without_network(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, preexec_fn=place, close_fds=False,
        env={**os.environ, "HOME": str(profile)},
    )  # fmt: skip
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(process, reading, writing)
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _without_network() -> list[str]:
    """Return the words that put a command into a network of its own, where that can be had."""
    unshare = shutil.which("unshare")
    words = [unshare, "--net"] if os.geteuid() == 0 else [unshare, "--map-current-user", "--net"]
    if unshare is None or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        return []
    return [str(word) for word in words]
