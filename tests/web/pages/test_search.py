"""The page of results with its filters, and the list of the palette, without the script."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from tests.web.conftest import Served
from tests.web.test_page import Browser


@pytest.fixture
def browser(serve: Callable[..., Served], tmp_path: Path) -> Browser:
    """Return a browser that is signed in to a vault in which a person and an agent wrote."""
    vault = tmp_path / "vault"
    notes = {
        "birds/Heron.md": "---\ntype: bird\ntags: [pond]\n---\nIt waits for fish.",
        "birds/Egret.md": "---\ntags: [river]\n---\nIt eats fish.",
        "Fish.md": "Fish swim in the pond.",
    }
    for path, text in notes.items():
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(text)
    server = serve(env={"SIMPLEMEM_EMBED_PROVIDER": "none"})
    server.tool("create_memory", name="Carp", content="A fish of an agent.")
    return Browser(server)


def hits(browser: Browser, path: str = "/", **parameters: str) -> set[str]:
    """Return the names of the notes that a page of results lists."""
    page = browser.get(f"{path}?{urlencode({'q': 'fish', **parameters})}")
    assert page.status == 200, page.body
    rows = page.body.decode().partition('<ol class="hits">')[2].partition("</ol>")[0]
    return set(re.findall(r'class="title" href="/note/([^"]+)"', rows))


@pytest.mark.parametrize("path", ["/", "/search"])
def test_each_filter_narrows_the_results(browser: Browser, path: str) -> None:
    assert hits(browser, path) == {"birds/Heron", "birds/Egret", "Fish", "Carp"}
    assert hits(browser, path, folder="birds") == {"birds/Heron", "birds/Egret"}
    assert hits(browser, path, tag="pond") == {"birds/Heron"}
    assert hits(browser, path, tag="#river", folder="birds") == {"birds/Egret"}
    assert hits(browser, path, type="bird") == {"birds/Heron"}
    assert hits(browser, path, author="agent") == {"Carp"}
    assert hits(browser, path, until="2001-01-01") == set()
    assert len(hits(browser, path, since="2001-01-01")) == 4


def test_filters_may_also_be_words_of_the_query(browser: Browser) -> None:
    assert hits(browser, q="fish tag:pond") == {"birds/Heron"}
    assert hits(browser, q="fish path:birds/ type:bird") == {"birds/Heron"}
    assert hits(browser, q="fish author:agent") == {"Carp"}


def test_filters_without_a_query_list_the_notes_that_pass(browser: Browser) -> None:
    assert hits(browser, q="", folder="birds") == {"birds/Heron", "birds/Egret"}
    assert b"<h1>Review</h1>" in browser.get("/?q=").body


def test_the_controls_show_the_filters_and_a_new_query_keeps_them(browser: Browser) -> None:
    page = browser.get("/?q=fish&tag=pond&since=2001-01-01&author=human").body.decode()
    assert "<option selected>pond</option>" in page
    assert 'name="since" form="search" value="2001-01-01"' in page
    assert 'name="author" form="search" value="human"' in page
    assert '<form id="search" role="search" action="/">' in page
    assert 'href="/?q=fish">Remove filters' in page
    assert "explain=1" in page and "tag=pond&amp;since=2001-01-01" in page


def test_a_filter_that_is_no_date_is_an_error_page(browser: Browser) -> None:
    page = browser.get("/?q=fish&since=nonsense")
    assert page.status == 400 and b"nonsense" in page.body


def test_the_palette_lists_names_first_and_each_note_once(browser: Browser) -> None:
    page = browser.get("/palette/search?q=fish").body.decode()
    addresses = re.findall(r'role="option"[^>]*href="([^"]+)"', page)
    assert addresses[0] == "/note/Fish" and addresses[-1] == "/?q=fish"
    assert len(addresses) == len(set(addresses)) == 5
    misspelt = browser.get("/palette/search?q=hreon").body.decode()
    assert "/note/birds/Heron" in misspelt


def test_the_palette_escapes_what_was_typed(browser: Browser) -> None:
    typed = "<img src=x onerror=alert(1)>\"'"
    page = browser.get(f"/palette/search?q={quote(typed)}").body.decode()
    assert "<img" not in page and 'href="/?q=%3Cimg' in page
    assert 'role="option"' not in browser.get("/palette/search?q=").body.decode()


def test_the_reasons_for_the_order_are_sentences(browser: Browser) -> None:
    page = browser.get("/?q=fish&explain=1").body.decode()
    assert "Words that the note contains" in page and "<dt>rank_score</dt>" not in page


def test_a_snippet_has_links_to_sections_as_notes_show_them(browser: Browser) -> None:
    text = (
        "The osprey follows [[Flight 2 Dipper#^corrected]], see [[#First steps]] and `[[a#b]]`,"
        " not issue#12, C#First or [[a#b]]. #First-tag"
    )
    browser.server.tool("create_memory", name="Osprey", content=text)
    shown = (
        "The osprey follows Flight 2 Dipper › corrected, see First steps and [[a#b]],"
        " not issue#12, C#First or a › b. #First-tag"
    )
    for path in ("/search", "/palette/search"):
        page = browser.get(f"{path}?q=follows").body.decode()
        assert shown in re.sub("</?mark>", "", page)
    found = browser.server.tool("search_memories", query="osprey")
    assert "Flight 2 Dipper#^corrected" in str(found)


def palette(browser: Browser, query: str) -> list[str]:
    """Return the names of the notes that the palette lists, in their order."""
    page = browser.get(f"/palette/search?q={quote(query)}").body.decode()
    return re.findall(r'role="option"[^>]*href="/note/([^"]+)"', page)


def test_the_palette_begins_with_notes_of_which_the_title_or_a_heading_equals_the_query(
    browser: Browser,
) -> None:
    vault = browser.server
    vault.tool("create_memory", name="Nest box", content="# Nest box\n\nOf oak.")
    vault.tool("create_memory", name="Nest box list", content="Nest box, nest box, nest box.")
    vault.tool(
        "create_memory", name="Garden", content="# Garden\n\n## Nest Box\n\nNest box at noon."
    )
    vault.tool("create_memory", name="Trees", content="Each nest box hangs in a tree.")

    names = palette(browser, "nest box")
    assert names[:2] == ["Nest%20box", "Garden"]
    assert set(names[2:]) == {"Nest%20box%20list", "Trees"}
    assert names[2] == "Nest%20box%20list"
    assert palette(browser, "list")[0] == "Nest%20box%20list"


def test_the_address_of_the_results_part_is_a_whole_page_when_a_person_opens_it(
    browser: Browser,
) -> None:
    for path in ("/search?q=fish", "/search?q=&folder=birds"):
        page = browser.get(path).body.decode()
        assert "<html" in page and 'id="search-filters"' in page and "/note/birds/Heron" in page
        part = browser.get(f"{path}&part=1").body.decode()
        assert "<html" not in part and "/note/birds/Heron" in part

    for path in ("/search", "/search?q="):
        page = browser.get(path).body.decode()
        assert "<html" in page and "/note/Fish" in page
