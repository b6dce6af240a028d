"""A person uses the page from the first search to an undo, in a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.conftest import Served


@pytest.mark.parametrize("width", [1280, pytest.param(PHONE_WIDTH, marks=pytest.mark.slow)])
def test_a_person_searches_reads_and_takes_back_in_a_browser(
    serve: Callable[..., Served], open_page: OpenPage, width: int
) -> None:
    server = serve()
    server.tool("create_memory", name="harbour", content="The harbour opens at six. See [[boat]].")
    server.tool("create_memory", name="boat", content="A boat of oak.")

    page = open_page(server, width=width, height=800)
    page.wait_for_selector("main.review")
    page.keyboard.press("/")
    page.keyboard.type("when does the harbour open")
    page.wait_for_selector("#palette [role=option]:has-text('harbour')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("article")
    page.click("article a.wikilink")
    page.wait_for_selector("h1:has-text('boat')")
    page.click("aside a:has-text('harbour')")
    page.wait_for_selector("h1:has-text('harbour')")
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    server.tool("create_memory", name="news", content="It rains.")
    page.wait_for_selector("#news:not([hidden]) a:has-text('news')")
    if page.is_visible("button.menu"):
        page.click("button.menu")
    page.click("nav a:has-text('Review')")
    page.click("article:has(a.title:has-text('boat')) button:has-text('Undo')")
    page.wait_for_selector("article.undone:has-text('boat')")
    assert server.api("GET", "/memories/boat").status == 404


def test_a_search_on_any_page_shows_its_results_there_and_ends_the_one_before(
    serve: Callable[..., Served], open_page: OpenPage
) -> None:
    server = serve()
    server.api("PUT", "/memories/heron", {"content": "It stands in the pond."})
    server.api("PUT", "/memories/boat", {"content": "A boat of oak."})
    page = open_page(server, "/note/boat")
    page.wait_for_selector("article")

    # The first search gets no answer, so that only the script can end it.
    ended: list[str] = []
    page.on("requestfailed", lambda request: ended.append(request.url))
    page.route("**/search?q=po", lambda route: None)
    page.keyboard.press("Control+k")
    with page.expect_request("**/search?q=po"):
        page.keyboard.type("po")
    page.keyboard.type("nd")
    page.wait_for_selector("#palette mark:has-text('pond')")
    assert [url.rpartition("=")[2] for url in ended] == ["po"]

    page.keyboard.press("Escape")
    page.wait_for_selector("#palette", state="hidden")
    page.keyboard.press("Control+k")
    page.keyboard.type("pond")
    page.wait_for_selector("#palette mark:has-text('pond')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('heron')")
