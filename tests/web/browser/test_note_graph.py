"""The small graph on the page of a note, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page
from waiting import eventually

from tests.web.browser.conftest import PHONE_WIDTH, OpenPage
from tests.web.browser.test_accessibility import findings_of
from tests.web.browser.test_graph import place_of
from tests.web.conftest import Served

pytestmark = pytest.mark.slow

NOTES = {
    "birds/Heron.md": "It stands in the [[Pond]].",
    "Pond.md": "With [[Fish (small)]].",
    "Fish (small).md": "It swims.",
    "Alone.md": "It links to nothing.",
    "Long.md": "A line of text.\n\n" * 200 + "See [[Pond]].",
}


@pytest.fixture
def server(serve: Callable[..., Served], tmp_path: Path) -> Served:
    """Return a server on a vault of five notes: all but one are linked."""
    for path, text in NOTES.items():
        file = tmp_path / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return serve(env={"SIMPLEMEM_EMBED_PROVIDER": "none"})


def wait_for_notes(page: Page, *labels: str) -> None:
    """Wait until the graph shows notes with these labels, and no others."""
    shown = "window.graphView?.labels?.toSorted()"
    assert eventually(lambda: page.evaluate(shown) == sorted(labels)), page.evaluate(shown)


def is_drawn(page: Page, name: str) -> bool:
    """Return whether the canvas has a circle where a note is."""
    place_of(page, name)
    return bool(
        page.evaluate(
            """name => {
                const note = graphView.labels.indexOf(name);
                const ratio = graphView.canvas.width / graphView.canvas.clientWidth;
                const [x, y] = graphView.screen.slice(2 * note, 2 * note + 2);
                const pixel = graphView.context.getImageData(x * ratio, y * ratio, 1, 1).data;
                return pixel[3] === 255;
            }""",
            name,
        )
    )


def test_the_neighbours_of_a_note_are_drawn_and_a_click_opens_one(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/note/Pond")
    wait_for_notes(page, "Pond", "Heron", "Fish (small)", "Long")
    assert is_drawn(page, "Heron") and is_drawn(page, "Fish (small)")

    page.mouse.click(*place_of(page, "Pond"))
    assert page.url.endswith("/note/Pond")
    page.mouse.click(*place_of(page, "Heron"))
    page.wait_for_selector("h1:has-text('Heron')")
    wait_for_notes(page, "Heron", "Pond")


def test_the_keyboard_reaches_the_notes_in_the_lists_which_marks_them_in_the_graph(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/note/Pond")
    wait_for_notes(page, "Pond", "Heron", "Fish (small)", "Long")
    page.focus("aside a:has-text('Fish (small)')")
    assert page.evaluate("graphView.labels[graphView.hovered]") == "Fish (small)"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Graph around this note"
    assert page.evaluate("graphView.hovered") == -1

    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Fish (small)')")


def test_nothing_of_the_graph_is_loaded_before_it_comes_into_view(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/note/Alone", width=PHONE_WIDTH)
    paths: list[str] = []
    page.on("request", lambda request: paths.append(request.url))
    page.goto(f"http://127.0.0.1:{server.port}/note/Long")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    parts = ("/graph/data", "graph-view.js", "graph-layout.js", "forces.js")
    assert not [path for path in paths if any(part in path for part in parts)]

    page.locator(".local-graph").scroll_into_view_if_needed()
    wait_for_notes(page, "Long", "Pond")
    for part in parts:
        assert any(part in path for path in paths), part


def test_the_graph_follows_a_change_of_the_note(server: Served, open_page: OpenPage) -> None:
    page = open_page(server, "/note/Pond")
    wait_for_notes(page, "Pond", "Heron", "Fish (small)", "Long")
    server.tool("update_memory", name="Pond", content="With [[Fish (small)]] and [[Alone]].")
    wait_for_notes(page, "Pond", "Heron", "Fish (small)", "Long", "Alone")
    assert is_drawn(page, "Alone")


def test_the_wheel_scrolls_the_page_and_zooms_only_with_ctrl(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/note/Pond", height=400)
    page.locator(".local-graph").scroll_into_view_if_needed()
    wait_for_notes(page, "Pond", "Heron", "Fish (small)", "Long")
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    page.locator(".local-graph canvas").hover()
    place_of(page, "Pond")
    scale = page.evaluate("graphView.camera.scale")
    top = page.evaluate("scrollY")
    page.mouse.wheel(0, 60)
    assert eventually(lambda: page.evaluate("scrollY") > top)
    assert page.evaluate("graphView.camera.scale") == scale

    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    assert eventually(lambda: page.evaluate("graphView.camera.scale") > scale)


def test_with_reduced_motion_the_notes_do_not_move(server: Served, open_page: OpenPage) -> None:
    page = open_page(server, "/note/Alone")
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"http://127.0.0.1:{server.port}/note/Pond")
    wait_for_notes(page, "Pond", "Heron", "Fish (small)", "Long")
    before = page.evaluate("[...graphView.positions]")
    assert page.evaluate("graphView.targets") is None
    page.hover("aside a:has-text('Heron')")
    assert is_drawn(page, "Heron")
    assert page.evaluate("[...graphView.positions]") == before


def test_without_script_there_is_a_link_to_the_graph_and_no_empty_drawing(
    server: Served, open_page: OpenPage
) -> None:
    page = open_page(server, "/note/Pond", script=False)
    assert not page.is_visible(".local-graph")
    page.click("text=Graph around this note")
    page.wait_for_selector(".nodes a:has-text('Heron')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE_WIDTH])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(
    server: Served, open_page: OpenPage, scheme: Literal["light", "dark"], width: int
) -> None:
    page = open_page(server, "/note/Pond", width=width, scheme=scheme)
    page.locator(".local-graph").scroll_into_view_if_needed()
    wait_for_notes(page, "Pond", "Heron", "Fish (small)", "Long")
    assert is_drawn(page, "Pond")
    assert findings_of(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
