"""Context packs of a vault: what goes in, in which order, and where it says it comes from."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.models import Filter, Pack
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}})


@pytest.fixture
def harbour(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    for k in range(12):
        lines = [
            f"In year {year} the harbour crane number {k} was repaired in spring."
            for year in range(1 + 6 * k)
        ]
        write(f"n{k}.md", f"# Crane {k}\n\n" + "\n\n".join(lines))
    write("other.md", "Bees.")
    plain_store.sync()
    return plain_store


def names(packed: Pack) -> list[str]:
    return [str(item["name"]) for item in packed.items]


def test_the_best_note_has_several_passages_before_the_worst_has_one(
    plain_store: EnhancedStore, write: Write
) -> None:
    parts = ("engine", "jib", "hook", "cabin", "rail")
    sections = [f"## The {part}\n\n" + f"The harbour crane has a {part}. " * 25 for part in parts]
    write("Harbour crane.md", "# Harbour crane\n\n" + "\n\n".join(sections))
    for k in range(6):
        write(f"n{k}.md", f"The harbour was quiet. A crane stood there. {'Sea. ' * 90}")
    plain_store.sync()
    packed = plain_store.context("harbour crane", budget_tokens=1500)
    assert names(packed)[0] == "Harbour crane"
    assert names(packed).count("Harbour crane") > 2
    assert packed.text.count("### Harbour crane · ") == 1


def test_notes_that_have_little_to_do_with_the_query_do_not_fill_the_budget(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("best.md", "The quetzal crane by the pier was greased and then repaired by Wendy.")
    for k in range(15):
        write(f"n{k:02}.md", f"Number {k}: the pier. " + "It rained on that day as on others. " * 9)
    plain_store.sync()
    packed = plain_store.context("quetzal crane greased and repaired", budget_tokens=20_000)
    assert names(packed) == ["best"]


def test_a_passage_stands_as_it_is_in_the_note_now(harbour: EnhancedStore, write: Write) -> None:
    """An edit that the index has not heard of yet moves no words into a citation that are not there."""
    preamble = "\n\n".join(
        f"Preamble {k}, which speaks of nothing that anybody asked for." for k in range(40)
    )
    write("n5.md", f"# Minutes\n\n{preamble}\n\n# Sale\n\nThe quetzal harbour crane was sold.\n")
    packed = harbour.context(
        "quetzal harbour crane sold", budget_tokens=400, filter=Filter.of(prefix="n5")
    )
    assert "The quetzal harbour crane was sold." in packed.text
    assert packed.items[0]["heading"].endswith("Sale")


# -- citations


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
@pytest.mark.parametrize(
    "header", ["", "---\ntitle: Log\ntags:\n  - a\n---\n"], ids=["bare", "frontmatter"]
)
def test_a_citation_names_the_line_on_which_the_passage_begins(
    plain_store: EnhancedStore, write: Write, end: str, mark: str, header: str
) -> None:
    birds = ("gull", "tern", "heron", "auk")
    days = (
        f"\n## Day {k}\n\n" + f"The {bird} was seen from the pier. " * 30
        for k, bird in enumerate(birds)
    )
    body = "".join(f"{day}\u2028\n" for day in days)
    text = header + "# Birds\n" + body
    write("log.md", (mark + text.replace("\n", end)).encode())
    plain_store.sync()
    lines = text.split("\n")
    for word in birds:
        item = plain_store.context(f"{word} pier", budget_tokens=2000).items[0]
        section = lines[int(item["line"]) - 1 :]
        assert any(word in line for line in section[:5])
        assert section[0].startswith("#")
        text = plain_store.context(f"{word} pier", budget_tokens=2000).text
        shown = text[text.index(f"[log:{item['line']}]") :].split("\n\n", 1)[1]
        assert shown.split("\n")[0] == section[0]


# -- neighbours


def test_a_note_linked_with_the_best_hit_is_named_as_such_and_only_if_it_holds_a_word(
    plain_store: EnhancedStore, write: Write
) -> None:
    for k in range(30):
        write(f"c{k:02}.md", f"Number {k}: " + "the crane, the crane. " * 3)
    write("best.md", "The crane, the crane, the crane by the pier: see [[beside]] and [[silent]].")
    write("beside.md", "A crane, among " + "many other things that are nowhere near it. " * 4)
    write("silent.md", "Nothing of the kind.")
    write(
        "back.md",
        "Of a crane, after " + "very much about something else entirely. " * 4 + "See [[best]].",
    )
    plain_store.sync()
    packed = plain_store.context("crane pier", budget_tokens=5000)
    via = {item["name"]: item.get("via", "") for item in packed.items}
    assert via["beside"] == "linked from best"
    assert via["back"] == "links to best"
    assert "silent" not in via
    assert names(packed)[0] == "best"
    assert "· linked from best\n" in packed.text
    narrowed = plain_store.context(
        "crane pier", budget_tokens=5000, filter=Filter.of(prefix="best")
    )
    assert names(narrowed) == ["best"]


def test_the_days_before_and_after_a_dated_note_are_its_neighbours(
    plain_store: EnhancedStore, write: Write
) -> None:
    for k in range(30):
        write(f"c{k:02}.md", f"Number {k}: " + "the crane, the crane. " * 3)
    pad = "Of other things that were said on that day, and of some that were not. "
    more = "We had bread and cheese at noon, in the shade of the shed, and a nap."
    write("log/2026-01-22.md", f"A crane. {more} {more}")
    write("log/deep/2026-01-24.md", f"One more crane. {pad} {more}")
    write("log/a diary 2026-01-25.md", f"After that a crane. {more} {pad} {pad}")
    write("log/2026-01-23.md", "The crane of the pier, the pier crane, was repaired.")
    write("log/2026-01-30.md", f"Again a crane. {pad} {pad}")
    write("log/2026-02-14.md", f"And a crane. {pad}")
    write("elsewhere/2026-01-24.md", f"Some crane. {pad}")
    plain_store.sync()
    packed = plain_store.context("crane pier", budget_tokens=5000)
    via = {item["name"]: item["via"] for item in packed.items if item.get("via")}
    assert via == {
        "log/2026-01-22": "the one before log/2026-01-23",
        "log/a diary 2026-01-25": "the one after log/2026-01-23",
    }


# -- the same bytes


def test_a_pack_is_the_same_whatever_the_order_in_which_notes_were_indexed(tmp_path: Path) -> None:
    notes = {
        f"log/2026-01-{k:02}.md": f"The crane was seen at {k} o'clock, near [[log/2026-01-{k + 1:02}]].\n\n"
        + "Same words. " * 9
        for k in range(10, 28)
    }
    notes |= {f"same/{k}/Crane.md": "The very same crane.\n" for k in range(70)}
    packs = set()
    for vault, order in (("a", sorted(notes)), ("b", sorted(notes, reverse=True))):
        root = tmp_path / vault
        root.mkdir()
        with EnhancedStore(root, PLAIN) as store:
            for path in order:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(notes[path], encoding="utf-8", newline="")
                os.utime(root / path, (1_767_225_600, 1_767_225_600))
                store._parts.keeper.look_at({path})
            packs.add(
                "\n====\n".join(
                    store.context(question).text
                    for question in ("crane seen", "same crane", "words")
                )
            )
    assert len(packs) == 1


# -- what is not quoted

COMMENTED = "# Crane <!-- rev 7 -->\n\nThe pier crane <!-- simplemem:begin static --> lifts ten tons.\n\n{}\n\nRust.\n"


def test_a_pack_quotes_no_html_comment_and_leaves_no_room_where_it_stood(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("crane.md", COMMENTED.format("<!-- of\nthree long\nlines -->"))
    write("hidden.md", "A note.\n\n<!-- the quetzal crane -->\n")
    plain_store.sync()
    packed = plain_store.context("pier crane", budget_tokens=2000, filter=Filter.of(prefix="crane"))
    assert packed.text.split("\n\n", 1)[1] == "# Crane\n\nThe pier crane lifts ten tons.\n\nRust."
    assert packed.items[0]["heading"] == "Crane"
    found_by_it = plain_store.context("quetzal", budget_tokens=2000)
    assert names(found_by_it) == ["hidden"]
    assert "A note." in found_by_it.text and "quetzal" not in found_by_it.text


def test_a_pack_quotes_a_comment_of_obsidian_only_where_nothing_else_was_found(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("crane.md", COMMENTED.format("%% ask the zeppelin crew %%"))
    plain_store.sync()
    assert "zeppelin" not in plain_store.context("pier crane", budget_tokens=2000).text
    assert "zeppelin" in plain_store.context("zeppelin", budget_tokens=2000).text


def test_a_heading_is_found_as_it_is_quoted(plain_store: EnhancedStore, write: Write) -> None:
    write("crane.md", COMMENTED.format("More."))
    plain_store.sync()
    heading = plain_store.search("pier crane").hits[0].heading
    assert heading == "Crane"
    assert "ten tons" in plain_store.read("crane", section=heading).content


def test_a_citation_below_a_comment_names_its_line(
    plain_store: EnhancedStore, write: Write
) -> None:
    comment = "<!-- " + "word " * 30 + "\n" + "more " * 30 + "-->"
    sentences = " ".join(f"The pier crane has part {k} of iron." for k in range(30))
    write("crane.md", f"# Crane\n\n{comment}\n\nThe pier heron sleeps.\n\n{sentences}\n")
    plain_store.sync()
    packed = plain_store.context("pier heron sleeps", budget_tokens=60)
    line = (plain_store.root / "crane.md").read_text().split("\n")[packed.items[0]["line"] - 1]
    assert "The pier heron sleeps." in line and "heron sleeps" in packed.text
