"""A move changes no link's meaning, and no byte that is not a link's."""

from __future__ import annotations

import pytest

from simplemem.index.links import named_in_memory
from simplemem.note.note import read_note
from simplemem.vault.rewrite import Move, rewrite_links


def rewritten(text: str, files: list[str], old: str | None, new: str, source: str = "A.md") -> str:
    moved = Move(old, new)
    after = [path for path in files if path != old] + [new]
    return rewrite_links(read_note(text.encode()), source, moved, named_in_memory(files), named_in_memory(after))


FILES = ["A.md", "Target.md", "a/Dup.md", "b/Other.md", "a/M.md", "a/N.md", "T.md"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[Target]]", "[[Goal]]"),
        ("[[Target|shown]]", "[[Goal|shown]]"),
        ("[[Target|Target]]", "[[Goal|Goal]]"),
        ("[[Target#H|s]] ![[Target#^b]]", "[[Goal#H|s]] ![[Goal#^b]]"),
        ("[[target.md]]", "[[Goal.md]]"),
        ("[[/Target]]", "[[/Goal]]"),
        ("[[./Target]]", "[[./Goal]]"),
        ("[x](Target.md) [y](Target#H 't') [z](<Target.md>)", "[x](Goal.md) [y](Goal#H 't') [z](<Goal.md>)"),
        ("| a |\n| --- |\n| [[Target\\|c]] |\n", "| a |\n| --- |\n| [[Goal\\|c]] |\n"),
        ("%% [[Target]] %%", "%% [[Goal]] %%"),
        ("`[[Target]]` <!-- [[Target]] -->\n", "`[[Target]]` <!-- [[Target]] -->\n"),
        ("```\n[[Target]]\n```\n", "```\n[[Target]]\n```\n"),
        ('---\nup: "[[Target]]"\n---\n', '---\nup: "[[Goal]]"\n---\n'),
        ("a\r\n[[Target]]\r\nend", "a\r\n[[Goal]]\r\nend"),
        ("[[Missing]] [[T]]", "[[Missing]] [[T]]"),
    ],
)  # fmt: skip
def test_a_rename_keeps_a_links_form(before: str, after: str) -> None:
    assert rewritten(before, FILES, "Target.md", "Goal.md") == after


def test_an_escaped_property_link_is_written_in_its_own_quoting() -> None:
    before = '---\nup: "[[Target\\u007cshown]]"\n---\n'
    assert "Goal" in rewritten(before, FILES, "Target.md", "Goal.md")


def test_spaces_are_encoded_in_markdown_and_not_in_angle_brackets() -> None:
    before = "[x](Target.md) [y](<Target.md>) [[Target]]"
    assert rewritten(before, FILES, "Target.md", "New (1) Name.md") == (
        "[x](New%20%281%29%20Name.md) [y](<New (1) Name.md>) [[New (1) Name]]"
    )


def test_a_bare_link_to_a_unique_name_survives_a_move_untouched() -> None:
    assert rewritten("[[Target]] [x](Target.md)", FILES, "Target.md", "sub/Target.md") == "[[Target]] [x](Target.md)"


def test_a_path_follows_a_move() -> None:
    assert rewritten("[[b/Other]]", FILES, "b/Other.md", "c/d/Other.md") == "[[c/d/Other]]"


def test_a_name_taken_by_another_note_is_qualified_and_still_read_the_same() -> None:
    assert rewritten("[[Dup]] ![[Dup]] [[Other]]", FILES, "b/Other.md", "Dup.md") == (
        "[[a/Dup|Dup]] ![[a/Dup]] [[Dup]]"
    )


def test_in_a_table_no_bar_is_added() -> None:
    before = "| a |\n| --- |\n| [[Dup]] |\n"
    assert rewritten(before, FILES, None, "Dup.md") == "| a |\n| --- |\n| [[a/Dup]] |\n"


def test_a_new_note_steals_no_link() -> None:
    assert rewritten("[[Dup]]", FILES, None, "Dup.md") == "[[a/Dup|Dup]]"
    assert rewritten("[[Unwritten]]", FILES, None, "Unwritten.md") == "[[Unwritten]]"


def test_relative_links_of_a_moved_note_are_rebased() -> None:
    before = "[x](../T.md) [y](./N.md) [[Target]]"
    assert rewritten(before, FILES, "a/M.md", "b/c/M.md", "a/M.md") == "[x](../../T.md) [y](../../a/N.md) [[Target]]"


def test_a_link_to_itself_follows_a_renamed_note() -> None:
    assert rewritten("[[M]] [[#Here]]", FILES, "a/M.md", "a/New.md", "a/M.md") == "[[New]] [[#Here]]"
