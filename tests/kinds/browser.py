"""A headless Chromium for tests: pages opened from files, driven over its debugging pipe. No library, no port.

Messages are JSON, each ended by a NUL: what Chromium reads is its file descriptor 3, what it says comes on 4.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE = 60.0
# The browser wants its pipes as 3 and 4, whatever numbers they have here.
_BECOME = """
import os, sys
read, write = (os.dup(os.dup(os.dup(int(each)))) for each in sys.argv[1:3])
os.dup2(read, 3); os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str | None:
    """The browser that is installed, None without one or where its pipe cannot be spoken to."""
    if sys.platform == "win32":
        return None
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


class Page:
    """One page of a browser: what it loads, what it says, and what a person would do with it."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []  # errors and warnings of the console, exceptions, what the policy refused
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the browser, and wait for its answer; what it tells meanwhile is kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._hear(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._receive], [], [], _PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            said = os.read(self._receive, 1 << 20)
            if not said:
                raise RuntimeError("the browser has gone")
            self._buffer += said
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def _hear(self, told: dict[str, Any]) -> None:
        params = told.get("params", {})
        match told.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])

    # -- what a person does

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, file: Path) -> None:
        self.call("Page.navigate", url=file.as_uri())
        self.until(f"location.href === {json.dumps(file.as_uri())} && document.readyState === 'complete'")
        self.settled()

    def value(self, expression: str) -> Any:
        """What an expression is in the page, promises awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not self.value(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never came true: {expression}")
            time.sleep(0.02)

    def settled(self) -> None:
        """Two frames have been painted since."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({json.dumps(selector)}).innerText"))

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else ""
            )
        self.settled()

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)
        self.settled()

    def mouse(self, kind: str, x: float, y: float, *, held: bool = False) -> None:
        button = "left" if held or kind != "mouseMoved" else "none"
        clicks = 0 if kind == "mouseMoved" else 1
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=int(held), clickCount=clicks)

    def click(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, held=True)
        self.mouse("mouseReleased", x, y)
        self.settled()

    def click_on(self, selector: str) -> None:
        box = self.value(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
                         "return [b.x + b.width / 2, b.y + b.height / 2]; })()")  # fmt: skip
        self.click(*box)

    def wheel(self, x: float, y: float, by: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)
        self.settled()

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def while_moving(self, seconds: float, move: Callable[[float], None]) -> list[float]:
        """Milliseconds between the frames that were painted while something was done again and again."""
        self.value(
            "{ const frames = window.frames_ = []; requestAnimationFrame(function tick(now) { frames.push(now);"
            " if (window.frames_ === frames) requestAnimationFrame(tick); }); }"
        )
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds:
            move(passed / seconds)
        times = self.value("{ const frames = window.frames_; window.frames_ = null; frames }")
        return [b - a for a, b in pairwise(times[1:])]


@contextmanager
def opened_browser(home: Path, executable: str | None = None) -> Iterator[Page]:
    """A browser of its own for a while, with an empty profile in `home`."""
    program = executable or chromium()
    assert program is not None, "no Chromium is installed"
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _BECOME,
            str(to_read),
            str(from_write),
            program,
            *_FLAGS,
            f"--user-data-dir={home / 'profile'}",
        ],
        pass_fds=(to_read, from_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(home)},
    )
    os.close(to_read)
    os.close(from_write)
    try:
        yield Page(to_write, from_read)
    finally:
        os.close(to_write)
        os.close(from_read)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
