"""What is shown of a note with a hit: one line, short enough, with the place that was found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.index.api import TextSpan
from simplemem.note.plain_text import plain_text
from simplemem.search.rank import passage_around, snippet, where_words_stand
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
LIMIT = 60


def place(start: int, stop: int) -> TextSpan:
    return TextSpan(start, stop, 1, ())


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
def test_a_snippet_is_never_longer_than_asked_and_shows_only_what_stands_there(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    inner = data.draw(
        st.one_of(st.none(), st.integers(start, stop).map(lambda at: place(at, stop)))
    )
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


def test_a_hit_shows_the_passage_its_heading_and_its_line(
    plain_store: EnhancedStore, write: Write
) -> None:
    pad = "\n\n".join(
        f"Paragraph {k} says nothing of note, at some length, again and again." for k in range(60)
    )
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


def test_offsets_count_characters_whatever_the_note_holds(
    plain_store: EnhancedStore, write: Write
) -> None:
    odd = (
        "\ufeff---\r\ntitle: 😀\r\n---\r\n\r\n日本語\u2028x\x0cy 😀😀\r\n\r\n"
        + "Filler line.\r\n\r\n" * 40
    )
    write("a.md", odd + "The zeppelin landed.\r\n")
    write(
        "b.md",
        (odd + "The balloon landed.\r\n").encode()
        + b"caf\xe9 \xff\xfe\r\n\r\nThe airship landed.\r\n",
    )
    plain_store.sync()
    assert "The zeppelin landed." in plain_store.search("zeppelin").hits[0].snippet
    for word in ("balloon", "airship"):
        hit = plain_store.search(word).hits[0]
        assert f"The {word} landed." in hit.snippet
        assert word in (plain_store.root / "b.md").read_bytes().split(b"\n")[hit.line - 1].decode(
            "utf-8", "replace"
        )


def test_in_a_long_block_the_place_is_where_most_words_stand_together() -> None:
    text = (
        "The crane. "
        + "Nothing\nhere. " * 40
        + "The cranes of the harbour were repaired. "
        + "Nothing here. " * 40
    )
    cut = text.index("The cranes of")
    passages = [place(0, cut), place(cut, len(text))]
    around, there = where_words_stand(
        text, passages, place(0, len(text)), ["repair", "crane", "harbour"], LIMIT
    )
    assert around == passages[1]
    assert there is not None
    assert there.line == 41
    assert "cranes of the harbour" in snippet(text, passages[1], there, LIMIT)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("## A **bold** _heading_ ##", "A bold heading"),
        (
            "- **Ada:** see [[Plan#Costs|the plan]] and [[Hull]]. ^id1",
            "Ada: see the plan and Hull.",
        ),
        (
            '[the *site*](https://a.example/b_(c) "title"), <https://b.example>',
            "the site, https://b.example",
        ),
        ("> [!warning]- Mind\n> the ~~old~~ ==new== crane[^1]", "Mind the old new crane"),
        ("- [x] done\n2. then\n   * last", "done then last"),
        ("| a | b |\n|-|:-:|\n| [[c\\|d]] | e |", "a · b d · e"),
        ("Title\n=====\n\n---\nx %%y%% <b>z</b> \\*w\\*", "Title x y z *w*"),
        (
            "Run `a_*b*` or:\n```py\nx = __y__ * 2  # [[z]]\n```\n*now*",
            "Run a_*b* or: x = __y__ * 2 # [[z]] now",
        ),
        (
            "snake_case_name, 2*3*4, a * b, C#, [x], #tag, 5 < 6",
            "snake_case_name, 2*3*4, a * b, C#, [x], #tag, 5 < 6",
        ),
        ("***both***, **_so_** and **all *of* them**", "both, so and all of them"),
    ],
)
def test_a_snippet_is_the_text_as_read_and_not_as_typed(typed: str, read: str) -> None:
    assert snippet(typed, place(0, len(typed)), None, 200) == read


@pytest.mark.parametrize(
    "typed",
    [
        "[[a long name of a note|the crane of the harbour]] here. ",
        "**the crane, the crane of the harbour here.** ",
    ],
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
        assert len(plain_text(marks)) <= len(marks)


def test_hits_and_backlinks_show_a_text_as_it_is_read(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("a.md", "# Yard\n\n- **Ada:** the [[Crane|gantry]] was *repaired*\n")
    write("Crane.md", "Steel.\n")
    plain_store.sync()
    assert plain_store.search("repaired").hits[0].snippet == "Yard Ada: the gantry was repaired"
    assert plain_store.backlinks("Crane")[0].snippet == "Ada: the gantry was repaired"


TOPICS = "calendar kanban outline graph table reading citation export style theme icon sidebar search audio".split()


def footer(name: str) -> str:
    """A footer as a program adds it to every note: the same text with other addresses."""
    return (
        "\n%% Footer: please do not edit below this line %%\n\n# This note in GitHub\n\n"
        f"[Edit in GitHub](https://github.dev/hub/{name}.md) | [Copy this note](https://raw.example/{name}.md)\n"
    )


def badges(name: str) -> str:
    sorts = (("GitHub all releases", "downloads"), ("GitHub stars", "stars"))
    images = (
        f"![{alt}](https://img.shields.io/github/{of}/ada/{name}?logo=github)" for alt, of in sorts
    )
    return "%% --- Badges --- %%\n\n" + "\n".join(images) + "\n\n%% --- Badges --- %%\n\n"


def write_hub(write: Write) -> None:
    """40 notes of a program, with badges above and a footer below a line of their own."""
    for k in range(40):
        topic, other = TOPICS[k % 14], TOPICS[(k * 5 + 3) % 14]
        name = f"obsidian-{topic}-{k}"
        text = f"# {topic.title()} {k}\n\nShows a {topic} beside the {other} of the vault.\n"
        write(f"plugins/{name}.md", badges(name) + text + footer(name))


@pytest.mark.parametrize(
    "question",
    [
        "obsidian-kanban-1",
        "kanban beside the graph",
        "which plugin shows a calendar?",
        "sidebar of a note",
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "text", "semantic"])
def test_text_of_many_notes_is_not_shown_while_the_note_has_other_text_that_was_found(
    store: EnhancedStore, write: Write, question: str, mode: str
) -> None:
    write_hub(write)
    store.sync()
    found = [hit for hit in store.search(question, limit=10, mode=mode).hits if hit.score > 0.2]
    assert found
    for hit in found:
        assert "Shows a" in hit.snippet, hit.name
        for boilerplate in ("Edit in GitHub", "Badges", "Footer", "all releases"):
            assert boilerplate not in hit.snippet, hit.name


def test_text_of_many_notes_is_shown_where_nothing_else_was_found(
    store: EnhancedStore, write: Write
) -> None:
    write_hub(write)
    store.sync()
    for hit in store.search("copy this", limit=5, mode="text").hits:
        assert "Copy this note" in hit.snippet


def test_text_of_many_notes_counts_less_than_what_one_note_says(
    store: EnhancedStore, write: Write
) -> None:
    write_hub(write)
    own = (
        "# Changing pages\n\nOpen the page in the browser, press the pencil, and edit the text in GitHub. Afterwards the "
        "change is looked at by someone before it is shown to all readers, which may take a few days, so be patient and "
        "answer questions that are asked of you meanwhile.\n"
    )
    write("guides/Changing pages.md", own + footer("changing"))
    store.sync()
    for question in ("edit in GitHub", "github", "How can I edit a note in GitHub?"):
        for mode in ("hybrid", "text"):
            first = store.search(question, limit=1, mode=mode).hits[0]
            assert first.name == "guides/Changing pages", (question, mode)
            assert "press the pencil" in first.snippet


@pytest.mark.parametrize("question", ["simplemem begin static", "balloon", "begin"])
def test_an_html_comment_is_never_shown(store: EnhancedStore, write: Write, question: str) -> None:
    marked = "<!-- simplemem:begin static -->\nThe balloon was launched at noon.\n<!-- simplemem:end static -->\n"
    write("a.md", f"# Log\n\n{marked}\nIt landed at four.\n")
    write("b.md", "<!--\nbegin\n" + "static words\n\n" * 200 + "-->\n\nThe other balloon stayed.\n")
    write("c.md", "<!-- begin: only this -->\n")
    store.sync()
    hits = store.search(question, limit=5).hits
    assert hits
    for hit in hits:
        assert (
            "begin" not in hit.snippet and "static" not in hit.snippet and "--" not in hit.snippet
        ), hit.snippet
    texts = {hit.name: hit.snippet for hit in hits}
    assert "launched at noon" in texts.get("a", "launched at noon")
    assert "stayed" in texts.get("b", "stayed")


def test_a_place_that_was_found_by_the_address_of_a_badge_alone_is_not_shown(
    plain_store: EnhancedStore, write: Write
) -> None:
    write(
        "readme.md",
        badges("zeppelin")
        + "# Airship\n\nIt carries mail. "
        + "Nothing else is said. " * 40
        + "\n",
    )
    plain_store.sync()
    assert plain_store.search("zeppelin").hits[0].snippet.startswith("Airship It carries mail.")


def test_a_comment_of_obsidian_is_shown_only_where_nothing_else_was_found(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("a.md", "# Log\n\n%% the gantry is due for repair %%\n\nThe crane stood still.\n")
    plain_store.sync()
    assert plain_store.search("crane").hits[0].snippet == "Log The crane stood still."
    assert "due for repair" in plain_store.search("gantry").hits[0].snippet


def test_a_repeated_step_stays_between_steps_of_the_note(
    plain_store: EnhancedStore, write: Write
) -> None:
    for name in ("anchor", "bilge", "compass", "dinghy", "engine", "flag"):
        steps = f"1. Unlock the {name} box.\n2. Open the hatch.\n3. Check the {name}.\n"
        write(f"{name}.md", f"# Work on the {name}\n\n{steps}")
    plain_store.sync()
    shown = plain_store.search("check bilge").hits[0].snippet
    assert shown == "Work on the bilge Unlock the bilge box. Open the hatch. Check the bilge."
