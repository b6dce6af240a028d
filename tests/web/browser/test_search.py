"""Search in a browser: the palette on every page, and the page of results with its filters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.browser.test_accessibility import findings_of
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

NOTES = {
    "birds/Heron.md": "---\ntags: [pond]\n---\nIt waits for fish.",
    "birds/Egret.md": "It eats fish.",
    "Fish.md": "They swim in the pond.",
}


@pytest.fixture
def server(serve: Callable[..., Served], tmp_path: Path) -> Served:
    """Return a server on a vault of three notes."""
    for path, text in NOTES.items():
        file = tmp_path / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return serve(env={"SIMPLEMEM_EMBED_PROVIDER": "none"})


def options_of(page: Page) -> list[str]:
    return [text.split()[0] for text in page.locator("#palette [role=option]").all_inner_texts()]


def chosen_option(page: Page) -> str:
    """Return the first word of the option that a screen reader would read."""
    option = page.get_attribute("#palette input", "aria-activedescendant")
    assert page.get_attribute(f"#{option}", "aria-selected") == "true"
    return page.inner_text(f"#{option}").split()[0]


@pytest.mark.parametrize("path", ["/", "/note/Fish", "/graph", "/?q=heron", "/tags"])
def test_the_palette_opens_on_every_page_and_enter_opens_the_first_note(
    server: Served, open_page: OpenPage, path: str
) -> None:
    page = open_page(server, path)
    page.keyboard.press("Control+k")
    page.fill("#palette input", "egr")
    page.wait_for_selector("#palette [role=option]:has-text('birds/Egret')")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Egret')")


def test_arrow_keys_choose_among_names_and_texts(server: Served, open_page: OpenPage) -> None:
    page = open_page(server)
    page.keyboard.press("/")
    page.keyboard.type("fish")
    page.wait_for_selector("#palette [role=option]:has-text('Egret')")
    assert options_of(page)[0] == "Fish" and options_of(page)[-1] == "All"

    page.keyboard.press("ArrowDown")
    assert chosen_option(page) == "Fish"
    page.keyboard.press("ArrowDown")
    second = chosen_option(page)
    page.keyboard.press("ArrowUp")
    assert chosen_option(page) == "Fish"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h1:has-text('{second}')")


def test_the_focus_stays_in_the_palette_and_returns(server: Served, open_page: OpenPage) -> None:
    page = open_page(server, "/note/Fish")
    page.focus("nav a[href='/tags']")
    page.keyboard.press("Control+k")
    page.keyboard.type("heron")
    page.wait_for_selector("#palette [role=option]")
    page.keyboard.press("Escape")
    page.wait_for_selector("#palette", state="hidden")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "/tags"


def test_letters_typed_into_the_header_appear_in_the_palette(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/tags")
    page.click("header input[type=search]")
    page.keyboard.type("heron")
    page.wait_for_selector("#palette [role=option]:has-text('Heron')")
    assert page.input_value("#palette input") == "heron"
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#results .hits")
    assert page.url.endswith("/?q=heron")


def test_filters_and_words_change_the_results_and_the_address(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server)
    page.goto(f"http://127.0.0.1:{server.port}/?q=fish")
    page.click("summary:has-text('Filters')")
    page.select_option("select[name=tag]", "pond")
    page.wait_for_selector(".hits:has-text('Heron'):not(:has-text('Egret'))")
    assert "tag=pond" in page.url

    page.fill("header input[type=search]", "waits")
    page.wait_for_selector(".hits mark:has-text('waits')")
    assert "q=waits" in page.url and "tag=pond" in page.url
    page.reload()
    page.wait_for_selector(".hits:has-text('Heron')")
    assert page.input_value("select[name=tag]") == "pond"

    page.focus("header input[type=search]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Heron')")


def test_without_script_the_form_leads_to_results_with_filters(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, script=False)
    page.fill("header input[type=search]", "fish")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hits")
    page.click("summary:has-text('Filters')")
    page.select_option("select[name=folder]", "birds")
    page.click("button:has-text('Apply')")
    page.wait_for_selector(".hits:not(:has-text('They swim'))")
    assert "folder=birds" in page.url and page.input_value("select[name=folder]") == "birds"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE_WIDTH])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    server: Served, open_page: OpenPage, scheme: Literal["light", "dark"], width: int
) -> None:
    page = open_page(server, width=width, scheme=scheme)
    page.goto(f"http://127.0.0.1:{server.port}/?q=fish&folder=birds&explain=1")
    assert findings_of(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.keyboard.press("Control+k")
    page.wait_for_selector("#palette [role=option]")
    page.keyboard.press("ArrowDown")
    assert findings_of(page) == []
