"""A real headless Chromium, driven over its debugging pipe: no driver program and no package is needed."""

from __future__ import annotations

import base64
import itertools
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

_PATIENCE_S = 120.0
_POLL_S = 0.05
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check",
    "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--mute-audio",
)  # fmt: skip
# No name has an address and nobody answers, where a network of its own cannot be had.
_NOWHERE = ("--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9")
_ON_3_AND_4 = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts the browser, which reads its commands from descriptor 3 and answers on 4."""
_KEYS = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"code": "Escape", "windowsVirtualKeyCode": 27},
    "Tab": {"code": "Tab", "windowsVirtualKeyCode": 9},
    " ": {"code": "Space", "windowsVirtualKeyCode": 32, "text": " "},
}


def find_chromium() -> str | None:
    """Return the browser that this machine has, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


needs_chromium = pytest.mark.skipif(
    find_chromium() is None and "ROUNDKIT_CI" not in os.environ, reason="chromium is not installed"
)
"""Skips where there is no browser; CI installs one, so that there the tests fail."""


class BrowserError(AssertionError):
    """The browser refused a command, or a state that a test waits for did not come."""


class Page:
    """One tab.

    Attributes:
        console: What scripts wrote to the console as warnings and errors, what they threw, and what the
            page's policy forbade; whatever happened before an answer to a command is in it.
        requests: Every URL that the page asked for.
    """

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self.console: list[str] = []
        self.requests: list[str] = []
        self._browser, self._target, self._session = browser, target, session

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command of the DevTools protocol and return its result."""
        return self._browser.send(method, params, session=self._session)

    def open(self, url: str) -> None:
        """Go to a URL."""
        self.send("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, a promise's too, as JSON values."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            details = done["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return done["result"].get("value")

    def wait_for(self, expression: str, what: str, patience_s: float = _PATIENCE_S) -> Any:
        """Wait until an expression is true and return its value; a page that is still loading is not."""
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            try:
                value = self.evaluate(expression)
            except BrowserError:
                value = None
            if value:
                return value
            time.sleep(_POLL_S)
        text = self.evaluate("document.body ? document.body.innerText.slice(-2000) : ''")
        raise BrowserError(f"no {what} after {patience_s} s; the page says: {text}")

    def wait_for_text(self, selector: str, text: str, patience_s: float = _PATIENCE_S) -> None:
        """Wait until some element that a selector finds shows a text."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        shown = f"{found}.some(e => e.innerText.includes({json.dumps(text)}))"
        self.wait_for(shown, f"{text!r} in {selector}", patience_s)

    def click(self, selector: str, text: str | None = None) -> None:
        """Click the first visible element that a selector finds, and that shows a text, with a real mouse."""
        found = (
            f"[...document.querySelectorAll({json.dumps(selector)})].find("
            f"e => e.offsetParent && !e.disabled && (e.innerText || '').includes({json.dumps(text or '')}))"
        )
        middle = (
            f"(() => {{ const e = {found}; e.scrollIntoView({{block: 'center', inline: 'center'}});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()"
        )
        x, y = self.wait_for(middle, f"{selector} {text or ''} to click")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press and release a key: ``Tab``, ``Enter``, ``Escape``, a space or one letter."""
        extra = _KEYS.get(key, {"text": key})
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **extra)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, **{**extra, "text": ""})

    def type(self, text: str) -> None:
        """Insert a text where the focus is."""
        self.send("Input.insertText", text=text)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the viewport, in CSS pixels; a narrow one is a phone's."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=width < 600,
        )  # fmt: skip

    def prefer(self, *, dark: bool, media: str = "screen") -> None:
        """Set the reader's colour scheme, and whether the page is on a screen or in ``print``."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme, still])

    def accessibility(self) -> list[tuple[str, str]]:
        """Return role and name of every node that assistive technology sees."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (str(node["role"]["value"]), str(node.get("name", {}).get("value", "")))
            for node in nodes
            if not node["ignored"]
        ]

    def screenshot(self, path: Path, *, whole: bool = False) -> Path:
        """Write a PNG of the viewport, or of the whole page as far down as it goes."""
        options: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
            options |= {"clip": clip, "captureBeyondViewport": True}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", **options)["data"]))
        return path

    def close(self) -> None:
        """Close the tab."""
        self._browser.send("Target.closeTarget", {"targetId": self._target})

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """Take note of an event."""
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"warning", "error"}:
            self.console.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"warning", "error", "assert"}:
            words = [str(argument.get("value", argument.get("description"))) for argument in params["args"]]
            self.console.append(" ".join(words))


class Browser:
    """A running browser; one thread reads what it says."""

    def __init__(self, to_it: BinaryIO, from_it: BinaryIO) -> None:
        self._to, self._from = to_it, from_it
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        threading.Thread(target=self._read, name="chromium", daemon=True).start()

    def page(
        self,
        url: str = "about:blank",
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        media: str = "screen",
    ) -> Page:
        """Open a tab."""
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            page.send(f"{domain}.enable")
        page.prefer(dark=dark, media=media)
        page.resize(width, height)
        page.open(url)
        return page

    def send(self, method: str, params: dict[str, Any], *, session: str | None = None) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        number, answer = next(self._numbers), queue.SimpleQueue[dict[str, Any]]()
        self._answers[number] = answer
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        with self._lock:
            self._to.write(json.dumps(message).encode() + b"\0")
            self._to.flush()
        try:
            said = answer.get(timeout=_PATIENCE_S)
        except queue.Empty as error:
            raise BrowserError(f"no answer to {method}") from error
        if "error" in said:
            raise BrowserError(f"{method}: {said['error']}")
        result: dict[str, Any] = said["result"]
        return result

    def _read(self) -> None:
        rest = b""
        while piece := self._from.read1(1 << 16):  # type: ignore[attr-defined]
            *messages, rest = (rest + piece).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers.pop(message["id"]).put(message)
                elif page := self._pages.get(message.get("sessionId", "")):
                    page.heard(message["method"], message["params"])


@contextmanager
def chromium(*, network: bool = True) -> Iterator[Browser]:
    """Run a headless browser with a profile of its own, and end it afterwards.

    Args:
        network: Whether it reaches anything; without one, it has a network namespace of its own where the
            machine allows that.
    """
    program = find_chromium()
    assert program is not None, "chromium is not installed: apt-get install chromium"
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    with tempfile.TemporaryDirectory(prefix="roundkit-browser-", ignore_cleanup_errors=True) as profile:
        words = [program, *_FLAGS, f"--user-data-dir={profile}"]
        if not network:
            words = [*_apart(), *words, *_NOWHERE]
        if not network or os.geteuid() == 0:
            words.append("--no-sandbox")
        process = subprocess.Popen(
            [sys.executable, "-c", _ON_3_AND_4, str(their_in), str(their_out), *words],
            pass_fds=(their_in, their_out), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile},
        )  # fmt: skip
        os.close(their_in)
        os.close(their_out)
        with os.fdopen(our_out, "wb") as to_it, os.fdopen(our_in, "rb") as from_it:
            try:
                yield Browser(to_it, from_it)
            finally:
                process.terminate()
                process.wait(timeout=_PATIENCE_S)


def _apart() -> tuple[str, ...]:
    """Return the words that put a command into a network of its own, where that can be had."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    words = (unshare, *(() if os.geteuid() == 0 else ("--map-current-user",)), "--net")
    return () if subprocess.run([*words, "true"], capture_output=True, check=False).returncode else words
