"""The page in a real browser, from a file: nothing is fetched or complained of, and it does what a person wants of it."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from browser import Page, chromium, opened_browser
from odd_graph import odd_drawing

from simplemem.kinds.picture.drawing import LINK, Drawing, Edge, Node
from simplemem.kinds.picture.page import html

pytestmark = pytest.mark.skipif(
    chromium() is None, reason="no Chromium is installed (its pipe is spoken to on POSIX systems only)"
)

GANNET = "The first flight with [[Hydrogen for lift|hydrogen]]. See [[nowhere]].\n\n## Still to do\n\n%% hidden %%"
DRAWING = Drawing(
    "balloons",
    (
        Node("Gannet", "Gannet", "flight", "note", "flights/Gannet.md", ("flight", "gas/hydrogen"), GANNET),
        Node(
            "Hydrogen for lift",
            "Hydrogen for lift",
            "decision",
            "note",
            "decisions/Hydrogen for lift.md",
            (),
            "Cheaper.",
        ),
        Node("Priya", "Priya Raman", "person", "entity", "people/Priya.md", ("core",), "Builds what flies."),
        Node("Fulmar", "Fulmar", "", "missing"),
    ),
    (
        Edge(0, 1, LINK, is_link=True),
        Edge(2, 0, "built the box of", attributes={"strength": 0.9}),
        Edge(0, 3, "comes before"),
    ),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened_browser(tmp_path_factory.mktemp("browser")) as found:
        found.size(1200, 800)
        yield found


@pytest.fixture
def opened(page: Page, tmp_path: Path) -> Page:
    return show(page, DRAWING, tmp_path)


def show(page: Page, drawing: Drawing, folder: Path) -> Page:
    file = folder / "graph.html"
    file.write_text(html(drawing), encoding="utf-8")
    page.requests.clear()
    page.complaints.clear()
    page.open(file)
    return page


def hits(page: Page) -> list[str]:
    return [line.strip() for line in page.text("#hits").split("\n") if line.strip()]


def search(page: Page, text: str) -> None:
    page.key("/")
    page.value("document.activeElement.value = ''")
    page.type(text)


def name_shown(page: Page) -> str:
    """The name of the note that is open beside the scene, nothing if none is."""
    return page.text("#name") if page.value("document.querySelector('aside').checkVisibility()") else ""


def ground(page: Page) -> tuple[float, float]:
    """A spot with nothing but the ground around it: the cursor says so."""
    for x, y in ((500 + 50 * (k % 9), 560 + 25 * (k // 9)) for k in range(72)):
        if all(not points_at_something(page, x + dx, y + dy) for dx, dy in ((0, 0), (9, 0), (-9, 0), (0, 9), (0, -9))):
            return x, y
    raise AssertionError("no ground to be seen")


def points_at_something(page: Page, x: float, y: float) -> bool:
    page.mouse("mouseMoved", x, y)
    return bool(page.value("document.querySelector('canvas').classList.contains('over')"))


def where(page: Page, label: str) -> tuple[float, float]:
    """Where a node is on the screen: chosen by its name it stands in the middle."""
    search(page, label)
    page.key("Enter")
    page.click_on("#close")
    page.key("Escape")
    return 600, 400


def test_it_opens_from_a_file_fetches_nothing_and_says_nothing_on_the_console(opened: Page, tmp_path: Path) -> None:
    assert opened.requests == [(tmp_path / "graph.html").as_uri()]
    assert opened.complaints == []
    assert opened.text("#title") == "balloons"
    assert opened.text("#legend").split("\n") == ["not written yet", "1", "decision", "1", "flight", "1", "person", "1"]
    assert name_shown(opened) == ""


def test_the_graph_is_painted(opened: Page) -> None:
    colours = opened.value(
        "(() => { const c = document.querySelector('canvas'); const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; const s = new Set();"
        " for (let i = 0; i < d.length; i += 4) s.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]); return s.size; })()"
    )
    assert colours > 20  # nodes of three colours, lines and names with their soft edges


@pytest.fixture
def asked_for() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the paths it was asked for."""
    paths: list[str] = []

    class Heard(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, *said: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Heard) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", paths
        server.shutdown()
        thread.join()


TRY = """(async () => {
  const script = document.createElement('script'); script.textContent = 'window.ran = 1'; document.body.append(script);
  const image = document.createElement('img');
  const loaded = new Promise((done) => { image.onload = image.onerror = () => done(1); });
  image.src = '%s/image'; document.body.append(image); await loaded;
  return [window.ran || 0, await fetch('%s/fetch').then(() => 'fetched', () => 'refused')];
})()"""


def test_the_policy_lets_no_other_script_run_and_nothing_be_fetched(
    opened: Page, tmp_path: Path, asked_for: tuple[str, list[str]]
) -> None:
    address, paths = asked_for
    assert opened.value(TRY % (address, address)) == [0, "refused"]
    assert paths == []
    assert any("violates" in said for said in opened.complaints)
    without = tmp_path / "without.html"
    without.write_text("<!doctype html><body>", encoding="utf-8")
    opened.open(without)
    assert opened.value(TRY % (address, address)) == [1, "fetched"]
    assert paths == ["/image", "/fetch"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("gann", ["Gannet"]),
        ("hydrogen", ["Hydrogen for lift", "Gannet"]),  # in its name before in its text
        ("#core", ["Priya Raman"]),
        ("BUILDS flies", ["Priya Raman"]),
        ("decisions/", ["Hydrogen for lift"]),
        ("submarine", []),
    ],
)
def test_a_search_lists_names_texts_tags_and_folders(opened: Page, words: str, found: list[str]) -> None:
    search(opened, words)
    assert hits(opened) == found
    assert opened.text("#found") == (f"{len(found)} found" if found else "Nothing found")


def test_enter_opens_the_first_note_found_and_escape_goes_back(opened: Page) -> None:
    search(opened, "gannet")
    opened.key("Enter")
    assert name_shown(opened) == "Gannet"
    opened.key("Escape")
    assert name_shown(opened) == ""
    opened.key("Escape")
    assert opened.value("document.querySelector('#query').value") == ""
    assert hits(opened) == []


def test_a_click_on_a_node_shows_its_text_its_tags_and_what_it_is_tied_to(opened: Page) -> None:
    x, y = where(opened, "gannet")
    opened.click(x, y)
    assert name_shown(opened) == "Gannet"
    assert opened.text("#facts").strip().split("\n") == ["flight", "flights/Gannet.md", "#flight #gas/hydrogen"]
    assert opened.text("#bonds").split("\n") == [
        "links to → Hydrogen for lift",
        "← Priya Raman built the box of (strength 0.9)",
        "comes before → Fulmar",
    ]
    text = opened.text("#text")
    assert "The first flight with hydrogen. See [[nowhere]]." in text and "\nStill to do\n" in text
    opened.click(x - 150, y + 250)  # the ground
    assert name_shown(opened) == ""


def test_a_link_in_a_text_leads_to_its_note(opened: Page) -> None:
    search(opened, "gannet")
    opened.key("Enter")
    opened.click_on("#text button")
    assert name_shown(opened) == "Hydrogen for lift"
    assert opened.text("#text").strip() == "Cheaper."


def test_a_type_that_is_pressed_in_the_legend_is_hidden_and_not_found(opened: Page) -> None:
    search(opened, "hydrogen")
    flights = "[...document.querySelectorAll('#legend button')].find((b) => b.innerText.startsWith('flight'))"
    for hidden, found in ((True, ["Hydrogen for lift"]), (False, ["Hydrogen for lift", "Gannet"])):
        opened.value(f"{flights}.click()")
        opened.settled()
        assert hits(opened) == found
        assert opened.value(f"{flights}.getAttribute('aria-pressed')") == ("false" if hidden else "true")


def test_a_node_that_is_dragged_stays_where_it_was_put(opened: Page) -> None:
    x, y = where(opened, "gannet")
    drag(opened, x, y, 100, -100)
    assert name_shown(opened) == ""  # a drag is no click
    opened.click(x + 100, y - 100)
    assert name_shown(opened) == "Gannet"


def test_what_the_mouse_points_at_stands_out_and_no_longer_than_that(opened: Page) -> None:
    points_at(opened, *where(opened, "gannet"))


def drag(page: Page, x: float, y: float, dx: float, dy: float) -> None:
    page.mouse("mouseMoved", x, y)
    page.mouse("mousePressed", x, y, held=True)
    for step in range(1, 9):
        page.mouse("mouseMoved", x + dx * step / 8, y + dy * step / 8, held=True)
        page.settled()
    page.mouse("mouseReleased", x + dx, y + dy)
    page.settled()


def points_at(page: Page, x: float, y: float) -> None:
    """Point at a node, and away from the scene again."""
    seen = []
    for at in ((20, 20), (x, y), (20, 20)):
        page.mouse("mouseMoved", *at)
        page.settled()
        seen.append(page.value("document.querySelector('canvas').toDataURL()"))
    assert seen[0] == seen[2] != seen[1]


def test_dragging_the_ground_and_arrows_move_the_scene_and_the_wheel_zooms_about_the_mouse(opened: Page) -> None:
    x, y = where(opened, "gannet")
    drag(opened, *ground(opened), -100, 20)
    x, y = x - 100, y + 20
    opened.key("ArrowRight")
    x -= 80
    opened.wheel(x, y, -300)
    opened.click(x, y)
    assert name_shown(opened) == "Gannet"


def test_names_that_want_to_be_something_else_are_only_shown(page: Page, tmp_path: Path) -> None:
    drawing = odd_drawing()
    show(page, drawing, tmp_path)
    assert page.complaints == []
    assert page.value("document.querySelectorAll('img, iframe, a').length") == 0
    for label in ("onerror", "{{data}}", "__proto__", "田辺"):
        search(page, label)
        page.key("Enter")
        expected = next(node.label for node in drawing.nodes if label in node.label)
        assert page.value("document.querySelector('#name').textContent") == expected
        assert expected in page.value("document.querySelector('#text').textContent")
    assert page.complaints == []
    assert len(page.requests) == 1


def test_a_large_graph_that_is_dragged_and_moved_comes_out_where_it_was_put(page: Page, tmp_path: Path) -> None:
    nodes = tuple(Node(f"n{k}", f"n{k}", f"type {k % 9}", "note", text=f"text {k}") for k in range(3000))
    edges = tuple(Edge(k, k // 7, LINK, is_link=True) for k in range(1, 3000))
    show(page, Drawing("large", nodes, edges), tmp_path)
    search(page, "n1234")
    page.key("Enter")
    page.click_on("#close")
    drag(page, *ground(page), -80, -40)
    page.until("new Promise((done) => setTimeout(() => done(true), 150))")  # at rest, all is painted anew
    points_at(page, 520, 360)
    page.click(600, 400)
    assert name_shown(page) != "n1234"
    drag(page, 520, 360, 60, 120)
    page.click(580, 480)
    assert name_shown(page) == "n1234"
    assert page.complaints == []


def test_the_browser_would_tell_of_a_fetch_and_of_an_error(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text("<!doctype html><img src='missing.png'><script>console.error('no'); undefined.x</script>")
    page.requests.clear()
    page.complaints.clear()
    page.open(file)
    assert [Path(each).name for each in page.requests] == ["bad.html", "missing.png"]
    assert len(page.complaints) >= 2
