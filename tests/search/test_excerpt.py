"""What is shown of a note with a hit: one line, short enough, with the place that was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.index.door import Position
from simplemem.note.passages import as_read
from simplemem.search.rank import passage_around, snippet, where_words_stand
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
LIMIT = 60


def place(start: int, stop: int) -> Position:
    return Position(start, stop, 1, ())


def test_a_short_passage_is_shown_whole_on_one_line() -> None:
    text = "# Crane\n\n  It was\r\nrepaired\u2028today.  \n"
    assert snippet(text, place(0, len(text)), None, LIMIT) == "Crane It was repaired today."


def test_a_long_passage_is_shown_from_where_the_block_begins() -> None:
    before, after = "before " * 40, " after" * 40
    text = f"{before}The crane was repaired.{after}"
    block = place(len(before), len(before) + len("The crane was repaired."))
    shown = snippet(text, place(0, len(text)), block, LIMIT)
    assert "The crane was repaired." in shown
    assert shown.startswith("… ")
    assert shown.endswith("…")


@given(st.text(max_size=400), st.data())
def test_a_snippet_is_never_longer_than_asked_and_shows_only_what_stands_there(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    inner = data.draw(st.one_of(st.none(), st.integers(start, stop).map(lambda at: place(at, stop))))
    limit = data.draw(st.integers(40, 120))
    shown = snippet(text, place(start, stop), inner, limit)
    assert len(shown) <= limit
    assert "\n" not in shown
    assert shown == " ".join(shown.split())
    rest = iter(text[start:stop])
    kept = shown.removeprefix("… ").removesuffix("…").replace(" · ", " ")
    assert all(letter in rest for letter in kept.split(" ") for letter in letter)


def test_a_block_is_shown_within_the_passage_it_stands_in() -> None:
    passages = [place(0, 10), place(8, 20), place(20, 30)]
    assert passage_around(passages, place(9, 12)) == passages[0]
    assert passage_around(passages, place(12, 15)) == passages[1]
    assert passage_around(passages, place(40, 45)) == place(40, 45)
    assert passage_around(passages, None) == passages[0]
    assert passage_around([], None) is None


def test_a_hit_shows_the_passage_its_heading_and_its_line(plain_store: EnhancedStore, write: Write) -> None:
    pad = "\n\n".join(f"Paragraph {k} says nothing of note, at some length, again and again." for k in range(60))
    write(
        "a.md",
        f"---\ntitle: Yard\n---\n# Yard\n\n{pad}\n\n## Cranes\n\n### Repairs\n\nThe gantry was repaired.\n\n{pad}\n",
    )
    plain_store.sync()
    hit = plain_store.search("gantry").hits[0]
    lines = (plain_store.root / "a.md").read_text().split("\n")
    assert lines[hit.line - 1] == "The gantry was repaired."
    assert hit.heading == "Yard > Cranes > Repairs"
    assert "gantry" in hit.snippet
    assert len(hit.snippet) <= plain_store.settings.search.snippet_characters
    assert (hit.title, hit.type) == ("Yard", "memory")
    assert hit.sha256 == plain_store.read("a").sha256


def test_offsets_count_characters_whatever_the_note_holds(plain_store: EnhancedStore, write: Write) -> None:
    odd = "\ufeff---\r\ntitle: 😀\r\n---\r\n\r\n日本語\u2028x\x0cy 😀😀\r\n\r\n" + "Filler line.\r\n\r\n" * 40
    write("a.md", odd + "The zeppelin landed.\r\n")
    write("b.md", (odd + "The balloon landed.\r\n").encode() + b"caf\xe9 \xff\xfe\r\n\r\nThe airship landed.\r\n")
    plain_store.sync()
    assert "The zeppelin landed." in plain_store.search("zeppelin").hits[0].snippet
    for word in ("balloon", "airship"):
        hit = plain_store.search(word).hits[0]
        assert f"The {word} landed." in hit.snippet
        assert word in (plain_store.root / "b.md").read_bytes().split(b"\n")[hit.line - 1].decode("utf-8", "replace")


def test_in_a_long_block_the_place_is_where_most_words_stand_together() -> None:
    text = "The crane. " + "Nothing\nhere. " * 40 + "The cranes of the harbour were repaired. " + "Nothing here. " * 40
    cut = text.index("The cranes of")
    passages = [place(0, cut), place(cut, len(text))]
    around, there = where_words_stand(text, passages, place(0, len(text)), ["repair", "crane", "harbour"], LIMIT)
    assert around == passages[1]
    assert there is not None
    assert there.line == 41
    assert "cranes of the harbour" in snippet(text, passages[1], there, LIMIT)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("## A **bold** _heading_ ##", "A bold heading"),
        ("- **Ada:** see [[Plan#Costs|the plan]] and [[Hull]]. ^id1", "Ada: see the plan and Hull."),
        ('[the *site*](https://a.example/b_(c) "title"), <https://b.example>', "the site, https://b.example"),
        ("> [!warning]- Mind\n> the ~~old~~ ==new== crane[^1]", "Mind the old new crane"),
        ("- [x] done\n2. then\n   * last", "done then last"),
        ("| a | b |\n|-|:-:|\n| [[c\\|d]] | e |", "a · b d · e"),
        ("Title\n=====\n\n---\nx %%y%% <b>z</b> \\*w\\*", "Title x y z *w*"),
        ("Run `a_*b*` or:\n```py\nx = __y__ * 2  # [[z]]\n```\n*now*", "Run a_*b* or: x = __y__ * 2 # [[z]] now"),
        ("snake_case_name, 2*3*4, a * b, C#, [x], #tag, 5 < 6", "snake_case_name, 2*3*4, a * b, C#, [x], #tag, 5 < 6"),
        ("***both***, **_so_** and **all *of* them**", "both, so and all of them"),
    ],
)
def test_a_snippet_is_the_text_as_read_and_not_as_typed(typed: str, read: str) -> None:
    assert snippet(typed, place(0, len(typed)), None, 200) == read


@pytest.mark.parametrize(
    "typed",
    ["[[a long name of a note|the crane of the harbour]] here. ", "**the crane, the crane of the harbour here.** "],
)
def test_a_snippet_that_begins_within_marks_shows_none_of_them(typed: str) -> None:
    text = typed * 20
    for start in range(0, len(typed) * 3, 5):
        shown = snippet(text, place(0, len(text)), place(start, len(text)), 80)
        assert not set("[]*|") & set(shown) and len(shown) <= 80, shown


def test_a_snippet_that_begins_in_code_knows_where_the_code_ends() -> None:
    text = "```sh\n" + "run this\n" * 20 + "```\n### A *heading*\n" + "and words. " * 20
    shown = snippet(text, place(0, len(text)), place(text.index("this\n```"), len(text)), 80)
    assert shown.startswith("… this A heading and words.")


def test_marks_without_end_cost_no_more_than_the_text_is_long() -> None:
    for marks in ("*a " * 300, "[" * 900, "***a" * 250, "[a](" * 250, "`a``" * 250, ">" * 900):
        assert len(as_read(marks)) <= len(marks)


def test_hits_and_backlinks_show_a_text_as_it_is_read(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "# Yard\n\n- **Ada:** the [[Crane|gantry]] was *repaired*\n")
    write("Crane.md", "Steel.\n")
    plain_store.sync()
    assert plain_store.search("repaired").hits[0].snippet == "Yard Ada: the gantry was repaired"
    assert plain_store.backlinks("Crane")[0].snippet == "Ada: the gantry was repaired"
