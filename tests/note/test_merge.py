"""Two versions of a note become one: what only one side changed is taken, what both changed differently is marked."""

from __future__ import annotations

import pytest

from simplemem.note.header import read_header
from simplemem.note.merge import merge

BASE = (
    "---\ntitle: Kite\ntags: [toy, paper]\nmodified: 2026-01-01T10:00:00\n# of the note\nstatus: open\n---\n"
    "# Kite\n\nfirst\nsecond\nthird\nfourth\nfifth\n"
)


def properties(text: str) -> dict[str, object]:
    return dict(read_header(text).properties)


def test_changes_in_different_places_come_together_and_the_same_change_is_made_once() -> None:
    merged = merge(BASE, BASE.replace("first", "FIRST"), BASE.replace("fifth", "FIFTH"))
    assert merged.is_clean
    assert merged.text == BASE.replace("first", "FIRST").replace("fifth", "FIFTH")
    ours = BASE.replace("third\n", "third\nand more\n").replace("first", "FIRST")
    assert merge(BASE, ours, BASE.replace("third\n", "third\nand more\n")).text == ours


def test_different_changes_of_one_line_stand_marked_as_git_marks_them() -> None:
    merged = merge(
        BASE,
        BASE.replace("third", "our third"),
        BASE.replace("third", "their third"),
        ("here", "there"),
    )
    assert merged.conflicts == 1
    marked = "<<<<<<< here\nour third\n=======\ntheir third\n>>>>>>> there\n"
    assert merged.text == BASE.replace("third\n", marked)


def test_a_removed_line_stays_removed_and_a_removed_line_that_was_changed_is_a_conflict() -> None:
    without = BASE.replace("third\n", "")
    assert merge(BASE, without, BASE.replace("first", "FIRST")).text == without.replace(
        "first", "FIRST"
    )
    assert not merge(BASE, without, BASE.replace("third", "THIRD")).is_clean


def test_times_and_tags_that_both_changed_are_no_conflict() -> None:
    ours = BASE.replace("[toy, paper]", "[toy, paper, blue]").replace("T10:", "T12:")
    theirs = (
        BASE.replace("[toy, paper]", "[paper, red]")
        .replace("T10:", "T11:")
        .replace("fifth", "FIFTH")
    )
    for merged in (merge(BASE, ours, theirs), merge(BASE, theirs, ours)):
        assert merged.is_clean
        assert properties(merged.text)["tags"] == ["paper", "blue", "red"]
        assert properties(merged.text)["modified"] == "2026-01-01T12:00:00"
        assert "FIFTH" in merged.text
        assert "# of the note\n" in merged.text


@pytest.mark.parametrize(
    ("old", "mine", "yours", "both"),
    [
        ("tags: one", "tags: one, two", "tags: one three", ["one", "three", "two"]),
        ("tags: []", "tags:\n  - one", "tags:\n  - two", ["one", "two"]),
    ],
)
def test_tags_are_merged_in_each_of_their_notations(
    old: str, mine: str, yours: str, both: object
) -> None:
    base, ours, theirs = (f"---\n{tags}\n---\nBody.\n" for tags in (old, mine, yours))
    merged = merge(base, ours, theirs)
    assert merged.is_clean
    assert properties(merged.text)["tags"] == both


def test_properties_that_either_added_or_took_away_come_together_with_their_comments() -> None:
    ours = BASE.replace("status: open", "status: open\nweight: 3")
    theirs = (
        BASE.replace("title: Kite\n", "")
        .replace("# of the note", "# of the kite")
        .replace("T10:", "T11:")
    )
    merged = merge(BASE, ours.replace("T10:", "T12:"), theirs)
    assert merged.is_clean
    assert list(properties(merged.text)) == ["tags", "modified", "status", "weight"]
    assert "# of the kite\n" in merged.text


def test_a_property_set_to_two_things_keeps_ours_and_both_stand_marked_in_the_body() -> None:
    merged = merge(
        BASE, BASE.replace("open", "done"), BASE.replace("open", "lost").replace("first", "FIRST")
    )
    assert merged.conflicts == 1
    assert properties(merged.text)["status"] == "done"
    body = merged.text.split("---\n", 2)[2]
    assert body.startswith(
        "<<<<<<< ours\nstatus: done\n=======\nstatus: lost\n>>>>>>> theirs\n# Kite\n\nFIRST\n"
    )


def test_a_header_that_cannot_be_read_is_merged_as_lines() -> None:
    broken = BASE.replace("title: Kite", "title: [Kite")
    merged = merge(
        broken, broken.replace("first", "FIRST"), broken.replace("status: open", "status: done")
    )
    assert merged.is_clean
    assert merged.text == broken.replace("first", "FIRST").replace("status: open", "status: done")


def test_line_ends_and_the_byte_order_mark_are_kept() -> None:
    windows = "\ufeff" + BASE.replace("\n", "\r\n")
    merged = merge(windows, windows.replace("first", "FIRST"), windows.replace("fifth", "FIFTH"))
    assert merged.text == windows.replace("first", "FIRST").replace("fifth", "FIFTH")
    # A side that was saved with other line ends has not changed every line.
    merged = merge(BASE, BASE.replace("\n", "\r\n"), BASE.replace("fifth", "FIFTH\nsixth"))
    assert merged.text == BASE.replace("fifth", "FIFTH\nsixth").replace("\n", "\r\n")


def test_a_missing_line_end_at_the_end_glues_no_lines_together() -> None:
    assert merge("a\nb\n", "a\nb", "a\nb\nc\n").text == "a\nb\nc\n"
    assert merge("a\nb", "a\nb\nc", "x\na\nb").text == "x\na\nb\nc"
    assert merge("a", "b", "c").text == "<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"


def test_without_a_base_nothing_is_taken_for_deleted() -> None:
    merged = merge(
        None, BASE.replace("second\n", ""), BASE.replace("fourth\n", "").replace("toy, ", "")
    )
    assert merged.is_clean
    assert merged.text == BASE.replace("toy, paper", "paper, toy")
    assert not merge(None, BASE, BASE.replace("first", "FIRST")).is_clean


def test_hostile_texts_take_bounded_work_and_end_in_a_conflict_rather_than_in_a_wrong_merge() -> (
    None
):
    base, ours, theirs = (
        "\n".join("ab"[(k * k // n) % 2] for k in range(40_000)) for n in (3, 5, 7)
    )
    merged = merge(base, ours, theirs)
    assert merged.conflicts
    assert merged.text.count("<<<<<<< ours") == merged.conflicts


def test_a_note_that_ended_with_its_header_keeps_it_when_the_other_side_adds_text() -> None:
    base = "---\na: 1\n---\n"
    assert merge(base, "---\na: 1\n---", "---\na: 1\n---\nText\n").text == "---\na: 1\n---\nText\n"


def test_a_header_that_one_side_removed_is_gone_if_the_other_did_not_change_it() -> None:
    base = "---\n# Head\n# Head\n---\n"
    without_end = "---\n# Head\n# Head\n---"
    for merged in (merge(base, without_end, "a\n"), merge(base, "a\n", without_end)):
        assert (merged.text, merged.conflicts) == ("a\n", 0)


def test_a_comment_in_a_header_that_is_gone_does_not_become_a_heading() -> None:
    base = "---\na: 1\n---\nB\n"
    commented = "---\na: 1\n# note\n---\nB\n"
    assert merge(base, "B\n", commented).text == "B\n"
