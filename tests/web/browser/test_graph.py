"""The page of the graph in a browser: the drawing, its list, and the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page
from waiting import eventually

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.browser.test_accessibility import findings_of
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

NOTES = {
    "birds/Heron.md": "---\ntags: [pond]\n---\nIt stands in the [[Pond]].",
    "birds/Egret.md": "In the [[Pond]] too.",
    "Pond.md": "With [[Fish]]. #water",
    "Fish.md": "It swims.",
    "Tax.md": "Due in July.",
}


@pytest.fixture
def server(serve: Callable[..., Served], tmp_path: Path) -> Served:
    """Return a server on a vault of five notes, of which four are linked."""
    for path, text in NOTES.items():
        file = tmp_path / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return serve(env={"SIMPLEMEM_EMBED_PROVIDER": "none"})


def open_graph(open_page: OpenPage, server: Served, query: str = "", **options: object) -> Page:
    """Open the page of the graph, and wait until the layout has settled."""
    page = open_page(server, **options)
    page.goto(f"http://127.0.0.1:{server.port}/graph?{query}")
    if options.get("script", True):
        page.wait_for_selector(".drawing[data-settled]")
    return page


def listed(page: Page) -> list[str]:
    return page.locator(".nodes ol a").all_text_contents()


def place_of(page: Page, name: str) -> tuple[float, float]:
    """Return where the circle of a note is on the page, once it has stopped moving."""
    # The policy of the page forbids the script of `wait_for_function`.
    assert eventually(lambda: page.evaluate("!graphView.targets && !graphView.frame"))
    x, y = page.evaluate(
        """name => {
            const note = graphView.labels.indexOf(name);
            const box = graphView.canvas.getBoundingClientRect();
            const [x, y] = graphView.screen.slice(2 * note, 2 * note + 2);
            return [box.left + x, box.top + y];
        }""",
        name,
    )
    return x, y


def test_a_person_goes_from_a_note_to_its_graph_and_to_a_neighbour(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/note/Pond")
    page.click("text=Graph around this note")
    page.wait_for_selector(".drawing[data-settled]")
    assert set(listed(page)) == {"Pond", "Heron", "Egret", "Fish"}

    page.mouse.click(*place_of(page, "Fish"))
    card = page.locator(".card")
    assert "Fish" in card.inner_text() and "1 link here" in card.inner_text()
    card.get_by_role("link", name="Open").click()
    page.wait_for_selector("h1:has-text('Fish')")

    page.go_back()
    page.wait_for_selector(".drawing[data-settled]")
    page.mouse.dblclick(*place_of(page, "Heron"))
    page.wait_for_selector("h1:has-text('Heron')")


def test_choices_change_the_drawing_and_the_address(server: Served, open_page: OpenPage) -> None:
    page = open_graph(open_page, server)
    page.select_option("select[name=show]", "all")
    page.wait_for_selector(".nodes a:has-text('Tax')")
    assert "show=all" in page.url

    page.click("summary:has-text('Filters')")
    page.select_option("select[name=folder]", "birds")
    page.wait_for_selector("#graph-count:has-text('2 of 2 notes')")
    assert sorted(listed(page)) == ["Egret", "Heron"]

    page.select_option("select[name=colour]", "tag")
    page.wait_for_selector(".legend:has-text('#pond')")
    page.reload()
    page.wait_for_selector(".legend:has-text('#pond')")
    assert sorted(listed(page)) == ["Egret", "Heron"]


def test_a_search_in_the_graph_finds_a_note_and_shows_its_card(
    server: Served, open_page: OpenPage
) -> None:
    page = open_graph(open_page, server, "show=all")
    page.get_by_label("Find in the graph").fill("her")
    assert listed(page) == ["Heron"]
    page.keyboard.press("Enter")
    assert "birds/Heron" in page.locator(".card").inner_text()
    page.keyboard.press("Escape")
    assert len(listed(page)) == len(NOTES)


def test_the_drawing_is_moved_and_zoomed_by_keyboard_wheel_and_mouse(
    server: Served, open_page: OpenPage
) -> None:
    page = open_graph(open_page, server, "show=all")
    before = page.evaluate("({...graphView.camera})")
    page.focus(".drawing canvas")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    after = page.evaluate("({...graphView.camera})")
    assert after["scale"] > before["scale"] and after["x"] > before["x"]

    page.keyboard.press("0")
    assert page.evaluate("graphView.camera.scale") == pytest.approx(before["scale"], rel=0.2)

    page.hover(".drawing canvas", position={"x": 30, "y": 300})
    page.mouse.wheel(0, -300)
    assert eventually(lambda: page.evaluate("graphView.camera.scale") > before["scale"])

    x, y = place_of(page, "Tax")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 40, steps=4)
    page.mouse.up()
    moved_x, moved_y = place_of(page, "Tax")
    assert (moved_x, moved_y) != (x, y)


def test_every_note_is_reached_by_keyboard_in_the_list(server: Served, open_page: OpenPage) -> None:
    page = open_graph(open_page, server, "note=Pond")
    page.get_by_label("Find in the graph").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Pond"
    page.keyboard.press("Tab")
    assert page.evaluate("graphView.hovered") == 1
    page.keyboard.press("Enter")
    page.wait_for_selector("article")


def test_without_motion_the_layout_is_shown_once_when_it_is_done(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server)
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"http://127.0.0.1:{server.port}/graph?show=all")
    page.wait_for_selector(".drawing[data-settled]")
    assert page.evaluate("graphView.isStill && graphView.targets === null")


def test_without_script_the_page_is_a_list_and_a_form(server: Served, open_page: OpenPage) -> None:
    page = open_graph(open_page, server, "note=Pond", script=False)
    assert set(listed(page)) == {"Pond", "Heron", "Egret", "Fish"}
    assert not page.is_visible(".drawing")
    page.goto(f"http://127.0.0.1:{server.port}/graph")
    page.select_option("select[name=show]", "all")
    page.click("button:has-text('Apply')")
    page.wait_for_selector(".nodes a:has-text('Tax')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE_WIDTH])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    server: Served, open_page: OpenPage, scheme: Literal["light", "dark"], width: int
) -> None:
    page = open_graph(open_page, server, "note=Pond&similar=1", width=width, scheme=scheme)
    page.get_by_label("Find in the graph").fill("fish")
    page.keyboard.press("Enter")
    assert findings_of(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
