"""The page of the graph and its data, without the script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import Served
from tests.web.test_page import Browser


@pytest.fixture
def browser(serve: Callable[..., Served], tmp_path: Path) -> Browser:
    """Return a browser that is signed in to a vault of four notes, of which three are linked."""
    vault = tmp_path / "vault"
    notes = {
        "birds/Heron.md": "---\ntitle: The heron\ntype: bird\ntags: [pond]\n---\n[[Pond]]",
        "Pond.md": "With [[Fish]]. #water",
        "Fish.md": "It swims.",
        "Tax.md": "Due in July.",
    }
    for path, text in notes.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(text)
    return Browser(serve(env={"SIMPLEMEM_EMBED_PROVIDER": "none"}))


def data_of(browser: Browser, query: str) -> dict[str, Any]:
    """Return the data of a drawing."""
    answer = browser.get(f"/graph/data?{query}")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    data: dict[str, Any] = json.loads(answer.body)
    return data


def listed(browser: Browser, query: str) -> list[str]:
    """Return the addresses in the list of the page."""
    page = browser.get(f"/graph?{query}").body.decode()
    rows = page.partition('<ol class="rows">')[2].partition("</ol>")[0]
    return re.findall(r'href="([^"]+)"', rows)


def test_the_page_lists_the_notes_around_a_note_nearest_first(browser: Browser) -> None:
    assert listed(browser, "note=Heron") == ["/note/birds/Heron", "/note/Pond"]
    assert listed(browser, "note=Heron&depth=2")[-1] == "/note/Fish"
    page = browser.get("/graph?note=Heron&depth=2").body.decode()
    assert '<a href="/note/birds/Heron">The heron</a></h1>' in page
    assert "2 steps" in page and "3 of 3 notes" in page


def test_the_page_has_its_header_and_the_policy_of_all_pages(browser: Browser) -> None:
    page = browser.get("/graph")
    assert b'<nav id="menu"' in page.body and b'type="search"' in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_without_a_note_the_most_linked_notes_come_first_and_all_can_be_seen(
    browser: Browser,
) -> None:
    assert listed(browser, "")[0] == "/note/Pond"
    assert set(listed(browser, "show=all")) == {
        "/note/Fish",
        "/note/Pond",
        "/note/Tax",
        "/note/birds/Heron",
    }


def test_the_form_keeps_what_was_chosen(browser: Browser) -> None:
    page = browser.get("/graph?note=Heron&depth=3&folder=birds&colour=tag&similar=1").body.decode()
    assert '<option value="3" selected>' in page and '<option value="tag" selected>' in page
    assert '<option value="birds" selected>' in page and 'value="1" checked' in page
    assert '<input type="hidden" name="note" value="birds/Heron">' in page


def test_filters_apply_to_the_list_and_to_the_data(browser: Browser) -> None:
    assert listed(browser, "show=all&tag=water") == ["/note/Pond"]
    assert data_of(browser, "show=all&type=bird")["names"] == ["birds/Heron"]
    assert data_of(browser, "show=all&folder=birds")["matching"] == 1


def test_the_data_are_columns_with_links_as_pairs_of_positions(browser: Browser) -> None:
    data = data_of(browser, "note=Heron&depth=2")
    assert data["names"] == ["birds/Heron", "Pond", "Fish"]
    assert data["titles"] == ["The heron", "", ""]
    assert data["types"][data["type_of"][0]] == "bird"
    assert [[data["tags"][tag] for tag in tags] for tags in data["tags_of"]] == [
        ["pond"],
        ["water"],
        [],
    ]
    pairs = zip(data["links"][::2], data["links"][1::2], strict=True)
    assert {tuple(sorted(pair)) for pair in pairs} == {(0, 1), (1, 2)}
    assert data["distances"] == [0, 1, 2] and data["similar"] == []


def test_choices_that_are_unknown_have_their_defaults(browser: Browser) -> None:
    assert listed(browser, "note=Heron&depth=x") == listed(browser, "note=Heron&depth=1")
    assert listed(browser, "show=%00&colour=none") == listed(browser, "")


def test_a_note_that_does_not_exist_is_an_error_page(browser: Browser) -> None:
    for path in ("/graph?note=none", "/graph/data?note=none"):
        assert browser.get(path).status == 404


def test_a_token_for_a_folder_sees_only_its_part_of_the_graph(
    browser: Browser,
) -> None:
    reader = Browser(browser.server, browser.server.new_token("r", "--folder", "birds"))
    data = data_of(reader, "show=all")
    assert data["names"] == ["birds/Heron"] and data["links"] == []
    assert b"water" not in reader.get("/graph?show=all").body
