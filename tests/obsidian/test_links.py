"""A link means what Obsidian says it means; a move changes no meaning, and no byte outside a link.

The rules are those of docs/internals/links.md#which-file-a-link-leads-to.
"""

from __future__ import annotations

import pytest

from simplemem.index.notes import named_in_memory
from simplemem.note.note import read_note
from simplemem.obsidian.link_edits import Moves, rewrite_links
from simplemem.obsidian.settings import resolve_link

FILES = [
    "Target.md", "Other Note.md", "Root.md", "folder/Root.md", "folder/Sub Note.md", "folder/deep/Deep.md",
    "a/Dup.md", "bbbb/Dup.md", "x/Twin.md", "y/Twin.md", "p/Near.md", "longer-folder/Near.md", "v1.2 notes.md",
    "Café.md", "image.png", "assets/diagram.svg", "board.canvas", "own/sub/Near2.md", "Z/Near2.md", "no extension",
]  # fmt: skip


def meaning(target: str, source: str = "Source.md") -> str | None:
    return resolve_link(target, source, named_in_memory(FILES)).path


@pytest.mark.parametrize(
    ("target", "source", "path"),
    [
        ("", "a/Self.md", "a/Self.md"),
        ("Target", "Source.md", "Target.md"),
        ("tArGeT.MD", "Source.md", "Target.md"),
        ("folder/Sub Note", "Source.md", "folder/Sub Note.md"),
        ("deep/Deep", "Source.md", "folder/deep/Deep.md"),
        ("Dup", "Source.md", "a/Dup.md"),
        ("Dup", "bbbb/Source.md", "bbbb/Dup.md"),
        ("Root", "folder/Source.md", "Root.md"),
        ("Near", "longer-folder/Source.md", "longer-folder/Near.md"),
        ("Near2", "own/Source.md", "own/sub/Near2.md"),
        ("Near2", "Source.md", "Z/Near2.md"),
        ("../Target", "folder/Source.md", "Target.md"),
        ("./Sub Note", "folder/Source.md", "folder/Sub Note.md"),
        ("./Target", "folder/Source.md", None),
        ("/Target", "folder/Source.md", "Target.md"),
        ("/Sub Note", "folder/Source.md", None),
        ("nofolder/Target", "Source.md", None),
        ("v1.2 notes", "Source.md", "v1.2 notes.md"),
        ("Cafe\u0301", "Source.md", "Café.md"),
        ("image.png", "Source.md", "image.png"),
        ("image", "Source.md", None),
        ("diagram.svg", "folder/Source.md", "assets/diagram.svg"),
        ("board", "Source.md", None),
        ("no extension", "Source.md", "no extension"),
        ("../../outside", "Source.md", None),
        ("Missing", "Source.md", None),
    ],
)
def test_a_link_leads_where_obsidian_says(target: str, source: str, path: str | None) -> None:
    assert meaning(target, source) == path


def test_a_tie_is_decided_by_path_and_reported() -> None:
    found = resolve_link("Twin", "Source.md", named_in_memory(FILES))
    assert found.path == "x/Twin.md"
    assert found.ambiguous == ("x/Twin.md", "y/Twin.md")


def rewritten(text: str, files: list[str], old: str | None, new: str, source: str = "A.md") -> str:
    after = named_in_memory([path for path in files if path != old] + [new])
    moves = Moves({}, (new,)) if old is None else Moves({old: new})
    return rewrite_links(
        read_note(text.encode()), source, moves, named_in_memory(files), after, "shortest"
    )


MOVED_AMONG = ["A.md", "Target.md", "a/Dup.md", "b/Other.md", "a/M.md", "a/N.md", "T.md"]


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
    assert rewritten(before, MOVED_AMONG, "Target.md", "Goal.md") == after


def test_a_name_taken_by_another_note_is_qualified_and_still_read_the_same() -> None:
    assert rewritten("[[Dup]] ![[Dup]] [[Other]]", MOVED_AMONG, "b/Other.md", "Dup.md") == (
        "[[a/Dup|Dup]] ![[a/Dup]] [[Dup]]"
    )


def test_a_new_note_steals_no_link() -> None:
    assert rewritten("[[Dup]]", MOVED_AMONG, None, "Dup.md") == "[[a/Dup|Dup]]"
    assert rewritten("[[Unwritten]]", MOVED_AMONG, None, "Unwritten.md") == "[[Unwritten]]"


def test_relative_links_of_a_moved_note_are_rebased() -> None:
    before = "[x](../T.md) [y](./N.md) [[Target]]"
    assert (
        rewritten(before, MOVED_AMONG, "a/M.md", "b/c/M.md", "a/M.md")
        == "[x](../../T.md) [y](../../a/N.md) [[Target]]"
    )
