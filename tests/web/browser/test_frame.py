"""The frame of every page: one connection for all tabs, messages, live parts, and the header."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

MAX_CONNECTIONS = 6  # to one server, in every browser


def test_more_tabs_than_a_browser_has_connections_all_load_and_all_hear_of_a_change(
    serve: Callable[..., Served], open_page: OpenPage
) -> None:
    server = serve()
    server.api("PUT", "/memories/heron", {"content": "It stands in the pond."})
    first = open_page(server, "/note/heron")
    tabs = [first]
    for _ in range(MAX_CONNECTIONS + 2):
        tab = first.context.new_page()
        tab.goto(first.url)
        tabs.append(tab)

    server.tool("update_memory", name="heron", append="It flew away.")
    for tab in tabs:
        expect(tab.locator("#news")).to_contain_text("heron")
        expect(tab.locator("article")).to_contain_text("It flew away.")


def test_when_the_first_tab_closes_the_others_still_hear_of_changes(
    serve: Callable[..., Served], open_page: OpenPage
) -> None:
    server = serve()
    first = open_page(server, "/tags")
    second = first.context.new_page()
    second.goto(first.url)
    first.close()

    server.tool("create_memory", name="boat", content="A boat of oak.")
    expect(second.locator("#news")).to_contain_text("boat")


def test_a_message_is_closed_with_its_button_and_with_escape(
    serve: Callable[..., Served], open_page: OpenPage
) -> None:
    server = serve()
    page = open_page(server, "/tags")
    news = page.locator("#news")

    server.tool("create_memory", name="boat", content="A boat of oak.")
    expect(news).to_be_visible()
    page.get_by_role("button", name="Close this message").click()
    expect(news).to_be_hidden()

    server.tool("create_memory", name="ship", content="A ship of oak.")
    expect(news).to_be_visible()
    page.keyboard.press("Escape")
    expect(news).to_be_hidden()


def test_a_change_of_another_note_leaves_the_open_one_as_it_is(
    serve: Callable[..., Served], open_page: OpenPage
) -> None:
    server = serve()
    server.api("PUT", "/memories/heron", {"content": "It stands in the pond."})
    page = open_page(server, "/note/heron")
    page.evaluate("document.querySelector('article').dataset.mark = 'first'")

    server.tool("create_memory", name="boat", content="A boat of oak.")
    expect(page.locator("#news")).to_contain_text("boat")
    expect(page.locator("article[data-mark=first]")).to_be_visible()


@pytest.mark.parametrize("has_script", [True, False])
def test_on_a_phone_the_header_is_one_row_and_its_links_are_in_a_menu(
    serve: Callable[..., Served], open_page: OpenPage, has_script: bool
) -> None:
    page = open_page(serve(), width=PHONE_WIDTH, height=780, script=has_script)
    header = page.locator("header").bounding_box()
    assert header is not None and header["height"] == 56
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE_WIDTH

    tags = page.get_by_role("link", name="Tags")
    expect(tags).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    tags.click()
    expect(page.get_by_role("heading", name="Tags")).to_be_visible()
