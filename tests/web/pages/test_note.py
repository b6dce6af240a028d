"""The page of a note with what it refers to: images, canvases, embeds, properties, parts, authors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.web.conftest import Served
from tests.web.test_page import Browser

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def write(vault: Path, files: dict[str, str]) -> None:
    """Write files into a vault."""
    for path, text in files.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(text)


def test_images_are_sent_as_images_that_can_run_nothing(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    write(tmp_path / "vault", {"img/a.svg": SVG, "a.html": SVG, "b.pdf": "x", "n.md": "![[a.svg]]"})
    browser = Browser(serve())
    assert b'<img src="/file/img/a.svg"' in browser.get("/note/n").body
    image = browser.get("/file/img/a.svg")
    assert image.status == 200 and image.headers["content-type"] == "image/svg+xml"
    policy = image.headers["content-security-policy"]
    assert "sandbox" in policy and "default-src 'none'" in policy and "script" not in policy
    assert image.headers["x-content-type-options"] == "nosniff"
    for path in ("a.html", "b.pdf", "n.md", "none.png", "../config/x.png", ".obsidian/a.png"):
        assert browser.get(f"/file/{path}").status in (400, 404), path


def test_a_token_sees_only_the_images_canvases_and_embeds_of_its_folders(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    files = {"secret/a.png": "x", "secret/c.canvas": "{}", "secret/s.md": "hidden words"}
    text = "![[s]] ![[a.png]]\n\n![[s]]\n"
    write(tmp_path / "vault", files | {"open/n.md": text})
    server = serve()
    browser = Browser(server, server.new_token("reader", "--folder", "open"))
    page = browser.get("/note/open/n")
    assert page.status == 200
    assert b"hidden words" not in page.body and b"/file/" not in page.body
    assert browser.get("/file/secret/a.png").status == 404
    assert browser.get("/canvas/secret/c.canvas").status == 404


def test_a_canvas_is_a_list_of_its_cards_and_lines(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    canvas = {
        "nodes": [
            {"id": "1", "type": "text", "text": "<b>Idea</b>", "x": 0, "y": 9},
            {"id": "2", "type": "file", "file": "n.md", "x": 0, "y": 0},
            {"id": "3", "type": "link", "url": "javascript:alert(1)", "x": 1, "y": 0},
        ],
        "edges": [{"fromNode": "1", "toNode": "2", "label": "leads to"}, {"fromNode": "9"}],
    }
    files = {"c.canvas": json.dumps(canvas), "n.md": "[[c.canvas]]", "bad.canvas": "{"}
    write(tmp_path / "vault", files)
    browser = Browser(serve())
    assert b'href="/canvas/c.canvas"' in browser.get("/note/n").body
    page = browser.get("/canvas/c.canvas").body.decode()
    assert '<a href="/note/n">n.md</a>' in page and "leads to" in page
    assert "&lt;b&gt;Idea" in page and 'href="javascript' not in page
    assert "not valid JSON" in browser.get("/canvas/bad.canvas").body.decode()


def test_the_drawing_of_a_canvas_has_its_groups_colours_and_arrows(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    canvas = {
        "nodes": [
            {"id": "g", "type": "group", "label": "Plan", "x": -20, "y": -20, "color": "4"},
            {"id": "a", "type": "text", "text": "Start", "x": 0, "y": 0, "color": "#12ab9F"},
            {"id": "b", "type": "file", "file": "p.png", "x": 400, "y": 0, "color": "red"},
        ],
        "edges": [{"fromNode": "a", "toNode": "b", "fromEnd": "arrow", "label": "shows"}],
    }
    write(tmp_path / "vault", {"c.canvas": json.dumps(canvas), "p.png": "x", "n.md": "words"})
    browser = Browser(serve())
    assert browser.get("/note/n").status == 200  # from now on, the files are indexed
    page = browser.get("/canvas/c.canvas").body.decode()
    drawing = page.partition("<svg")[2].partition("</svg>")[0]
    assert '<g class="colour-4">' in drawing and '<g color="#12ab9F">' in drawing
    assert "red" not in drawing and ">Plan</text>" in drawing and ">shows</text>" in drawing
    assert '<path class="line" d="M250 30C325 30 325 30 400 30"/>' in drawing
    assert '"M250 30L262 36 262 24ZM400 30L388 36 388 24Z"' in drawing
    assert '<img src="/file/p.png"' in drawing


def test_a_hostile_canvas_is_drawn_within_bounds(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    far = "1" + "0" * 400
    nodes = [
        f'{{"id": "1", "x": {far}, "y": -1e999, "width": {far}, "text": "<script>a()</script>"}}',
        '{"id": "2", "x": NaN, "y": "7", "height": true, "color": "1\\" onload=\\"a()"}',
        '{"type": "<i>", "text": ["x"]}, {"type": "link", "url": "javascript:a()"}, 7, null',
        '{"type": "group"}, {"type": "file", "file": "../../secret.md"}, {"text": "no id"}',
    ]
    edges = '{"fromNode": "1", "toNode": "2", "toSide": "inside", "label": "</svg><script>"}, []'
    text = f'{{"nodes": [{",".join(nodes)}], "edges": [{edges}]}}'
    many = {"nodes": [{"id": str(n), "text": f"card {n}", "y": n} for n in range(10_000)]}
    files = {"bad.canvas": text, "many.canvas": json.dumps(many), "deep.canvas": "[" * 100_000}
    write(tmp_path / "vault", files)
    browser = Browser(serve())

    page = browser.get("/canvas/bad.canvas").body.decode()
    main = page.partition("<main")[2]
    assert "<script" not in main and "onload" not in main and "javascript:a()</li>" in main
    assert 'href="javascript' not in main and main.count("</svg>") == 1
    assert 'width="110' in main and "no id" in main

    page = browser.get("/canvas/many.canvas").body.decode()
    assert "card 1999" in page and "card 2000<" not in page and "larger than a page" in page
    assert "not valid JSON" in browser.get("/canvas/deep.canvas").body.decode()


def test_a_deleted_note_can_be_restored_from_its_address(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    server = serve()
    server.tool("create_memory", name="plan", content="Plant an oak.")
    server.tool("delete_memory", name="plan")
    reader = Browser(server, server.new_token("reader")).get("/note/plan").body.decode()
    assert ">Restore the note<" not in reader

    browser = Browser(server)
    page = browser.get("/note/plan").body.decode()
    button = re.search(r'<button name="version" value="(v\d+)">Restore the note</button>', page)
    assert button is not None
    assert "undo_change" not in page
    browser.post("/undo", version=button[1], note="plan")
    assert "Plant an oak." in browser.get("/note/plan").body.decode()


def test_properties_are_a_table_with_lists_dates_checkboxes_and_links(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    header = '---\ndone: true\ndue: 2026-01-24\nsee: ["[[n]]", two]\n---\ntext\n'
    write(tmp_path / "vault", {"n.md": header})
    page = Browser(serve()).get("/note/n").body.decode()
    assert '<input type="checkbox" disabled checked aria-label="done">' in page
    assert '<time datetime="2026-01-24">2026-01-24</time>' in page
    assert '<li><a href="/note/n" class="wikilink">n</a></li><li>two</li>' in page


def test_a_long_note_is_shown_in_parts_and_authors_on_request(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    write(tmp_path / "vault", {"n.md": "A paragraph of words.\n\n" * 5000})
    browser = Browser(serve())
    first = browser.get("/note/n").body.decode()
    assert 'href="/note/n?part=2"' in first and "Previous part" not in first
    second = browser.get("/note/n?part=2&only=text").body.decode()
    assert "<html" not in second and 'href="/note/n?part=3"' in second
    assert 'class="author' not in first
    assert 'class="author author-human"' in browser.get("/note/n?blame=1").body.decode()


def test_the_next_part_of_a_long_note_is_that_of_its_text_at_this_moment(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    text = "# n\n\n" + "Some words.\n\n" * 8000 + "See [[n]].[^1]\n\n[^1]: A footnote.\n"
    write(tmp_path / "vault", {"n.md": text, "secret/s.md": text.replace("# n", "# s")})
    server = serve()
    browser = Browser(server)
    assert b"1 of 3" in browser.get("/note/n").body
    for _ in range(2):
        part = browser.get("/note/n?part=3&only=text").body
        assert b"A footnote." in part and b'href="/note/n?part=2"' in part
        assert b"<main" not in part

    write(tmp_path / "vault", {"n.md": text + "\nA new last line.\n"})
    assert b"A new last line." in browser.get("/note/n?part=3&only=text").body
    assert browser.get("/note/secret/s").status == 200
    reader = Browser(server, server.new_token("reader", "--folder", "open"))
    assert reader.get("/note/secret/s?part=2&only=text").status == 404


def test_a_note_with_links_has_a_place_for_its_graph_and_the_page_does_not_make_it(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    notes = {"from.md": "[[to (2)]]", "to (2).md": "Linked.", "alone.md": "[[nowhere]]"}
    write(tmp_path / "vault", notes)
    browser = Browser(serve())
    for name in ("from", "to%20%282%29"):
        page = browser.get(f"/note/{name}").body.decode()
        assert '<div class="local-graph" hidden' in page and "</canvas>" in page
        assert f'href="/graph?note={name}&amp;depth=2"' in page
        assert "graph-view.js" not in page.partition("<main")[0]

    alone = browser.get("/note/alone").body.decode()
    assert "local-graph" not in alone and 'href="/graph?note=alone&amp;depth=2"' in alone
