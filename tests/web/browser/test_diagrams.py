"""Mermaid diagrams of a note in a browser: drawn in frames of their own, and harmless."""

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

KINDS = {
    "flowchart": "flowchart LR\n  a[Start] --> b{Choice}\n  b -->|yes| c[End]",
    "sequence": "sequenceDiagram\n  Ann->>Bob: Hello\n  Bob-->>Ann: Start",
    "class": "classDiagram\n  Animal <|-- Start\n  Animal : +int age",
    "state": "stateDiagram-v2\n  [*] --> Start\n  Start --> [*]",
    "gantt": "gantt\n  dateFormat YYYY-MM-DD\n  section A\n  Start :a1, 2026-01-01, 30d",
    "pie": 'pie showData title Pets\n  "Start" : 386\n  "Cats" : 85.9',
    "er": "erDiagram\n  START ||--o{ ORDER : places",
    "mindmap": "mindmap\n  root((Start))\n    One\n    Two",
    "timeline": "timeline\n  title Start\n  2025 : One\n  2026 : Two",
    "journey": "journey\n  title Start\n  section Day\n    Work: 5: Me",
    "quadrant": "quadrantChart\n  title Start\n  A: [0.3, 0.6]",
    "chart": 'xychart-beta\n  title "Start"\n  x-axis [a, b]\n  bar [1, 2]',
    "board": "kanban\n  Todo\n    [Start]",
}


def open_note(
    serve: Callable[..., Served], open_page: OpenPage, vault: Path, *sources: str, **options: object
) -> Page:
    """Open the page of a note with diagrams."""
    vault.mkdir()
    blocks = [f"```mermaid\n{source}\n```\n" for source in sources]
    (vault / "Plan.md").write_text("Before.\n\n" + "\nBetween.\n\n".join(blocks) + "\nAfter.\n")
    return open_page(serve(), "/note/Plan", **options)


def test_diagrams_of_all_kinds_are_drawn(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_note(serve, open_page, tmp_path / "vault", *KINDS.values(), height=30_000)
    count = page.locator("iframe.diagram.drawn, .text p.problem").count
    assert eventually(lambda: count() == len(KINDS), 60)
    assert page.locator(".text p.problem").all_text_contents() == []
    for number, kind in enumerate(KINDS):
        frame = page.frame_locator("iframe.diagram").nth(number)
        assert frame.locator("svg").bounding_box()["height"] > 20, kind
        assert "start" in frame.locator("svg").text_content().lower(), kind
    assert page.locator("pre.diagram").first.is_hidden()
    page.click("text=Source of the diagram >> nth=0")
    assert page.locator("pre.diagram").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, PHONE_WIDTH])
def test_a_diagram_fits_its_page_and_has_the_colours_of_the_scheme(
    serve: Callable[..., Served],
    open_page: OpenPage,
    tmp_path: Path,
    scheme: Literal["light", "dark"],
    width: int,
) -> None:
    wide = "flowchart LR\n" + "\n".join(f"  n{n} --> n{n + 1}" for n in range(20))
    vault = tmp_path / "vault"
    page = open_note(serve, open_page, vault, wide, width=width, scheme=scheme)
    page.wait_for_selector("iframe.diagram.drawn", timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert findings_of(page) == []

    frame = page.frame_locator("iframe.diagram")
    assert frame.locator("svg").bounding_box()["width"] <= width
    colour = frame.locator(".node rect").first.evaluate("shape => getComputedStyle(shape).fill")
    levels = [int(level) for level in colour.strip("rgb()").split(",")]
    assert (sum(levels) < 384) == (scheme == "dark")


def test_nothing_of_mermaid_is_loaded_before_a_diagram_comes_near(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Plain.md").write_text("No diagram.\n")
    (vault / "Far.md").write_text("Words.\n\n" * 400 + f"```mermaid\n{KINDS['pie']}\n```\n")
    server = serve()
    page = open_page(server, "/note/Plain")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"http://127.0.0.1:{server.port}/note/Plain")
    page.goto(f"http://127.0.0.1:{server.port}/note/Far")
    page.wait_for_timeout(300)
    assert not [url for url in requests if "diagram-frame" in url]

    page.locator("pre.diagram").scroll_into_view_if_needed()
    page.wait_for_selector("iframe.diagram.drawn", timeout=60_000)
    assert [url for url in requests if "diagram-frame" in url]


def test_without_a_script_and_on_an_error_the_source_is_shown(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    sources = ["flowchart LR\n a --", "sankey-beta\n a,b,1", "nothing that is known"]
    page = open_note(serve, open_page, tmp_path / "vault", *sources)
    problems = page.locator(".text p.problem")
    assert eventually(lambda: problems.count() == 3, 20)
    assert page.locator("pre.diagram >> visible=true").count() == 3
    assert page.locator("iframe").count() == 0


def test_without_a_script_the_source_is_shown(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_note(serve, open_page, tmp_path / "vault", KINDS["pie"], script=False)
    assert "Cats" in page.locator("pre.diagram").inner_text()
    assert page.locator("iframe").count() == 0


HOSTILE = [
    '%%{init: {"securityLevel": "loose", "maxTextSize": 9999999, "htmlLabels": true}}%%\n'
    'flowchart LR\n a["<img src=data:, onerror=top.hit()>"] --> b\n click a call hit()\n'
    ' click b "javascript:top.hit()"',
    "flowchart LR\n a[<script>top.hit()</script>] --> b[<iframe src=//evil.example>]",
    '%%{init: {"themeCSS": "* { background: url(//evil.example/x) }"}}%%\nflowchart LR\n a-->b',
    '---\nconfig:\n  securityLevel: loose\n---\nflowchart LR\n a["<a href=//evil.example>x</a>"]',
]


def test_a_hostile_diagram_reaches_neither_the_page_nor_the_network(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_note(serve, open_page, tmp_path / "vault", *HOSTILE, height=4000)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate("window.hits = 0; window.hit = () => { window.hits += 1 }; 0")
    settled = page.locator("iframe.diagram.drawn, .text p.problem")
    assert eventually(lambda: settled.count() == len(HOSTILE), 60)

    for frame in page.frames[1:]:
        assert frame.evaluate("origin") == "null"
        assert frame.evaluate("document.querySelectorAll('script').length") == 2
        assert frame.evaluate("document.querySelectorAll('[onerror], iframe').length") == 0
        frame.evaluate(
            "document.querySelectorAll('.node').forEach(node => node.dispatchEvent(new Event('click')))"
        )
    assert page.evaluate("hits") == 0
    assert page.locator("h1").inner_text() == "Plan"
    assert [url for url in requests if not url.startswith("http://127.0.0.1")] == []


def test_a_megabyte_of_source_is_not_drawn(
    serve: Callable[..., Served], open_page: OpenPage, tmp_path: Path
) -> None:
    long = "flowchart LR\n" + "a-->b\n" * 200_000
    page = open_note(serve, open_page, tmp_path / "vault", long)
    assert page.wait_for_selector(".text p.problem").inner_text().endswith("characters")
    assert page.locator("iframe").count() == 0
