"""A real browser, signed in to the page of a real server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.web.conftest import Served

PHONE_WIDTH = 390

OpenPage = Callable[..., Page]
"""Opens a page of a server and signs in: `open_page(server, "/notes", width=390, scheme="dark")`."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Yield a browser for all tests of a module.

    Its library keeps an event loop in this thread, so a client that needs one of its own must run
    in another thread. Without a browser, the tests are skipped, unless SIMPLEMEM_TEST_BROWSER says
    that there must be one.
    """
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        assert not os.environ.get("SIMPLEMEM_TEST_BROWSER"), "no Chromium is installed"
        pytest.skip("needs Chromium")

    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Return a function that opens a page in a browser profile of its own, signed in.

    At the end, the test fails if a page reported an error of its script or of its policy.
    """
    contexts = []
    errors: list[str] = []

    def open_one(
        server: Served,
        path: str = "/",
        *,
        width: int = 1280,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        script: bool = True,
        token: str = "",
    ) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: _note_violation(message.text, errors))

        page.goto(f"http://127.0.0.1:{server.port}{path}")
        page.fill("input[name=token]", token or server.token)
        page.press("input[name=token]", "Enter")
        page.wait_for_selector("nav", state="attached")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert errors == []


def _note_violation(text: str, errors: list[str]) -> None:
    """Add a message of the console to the errors if it is about the Content-Security-Policy."""
    if "Content Security Policy" in text:
        errors.append(text)
