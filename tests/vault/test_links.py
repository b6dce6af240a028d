"""A link means what Obsidian says it means (obsidian.md §1.4)."""

from __future__ import annotations

import pytest

from simplemem.index.links import named_in_memory
from simplemem.vault.links import lookup_keys, resolve

FILES = [
    "Target.md", "Other Note.md", "Root.md", "folder/Root.md", "folder/Sub Note.md", "folder/deep/Deep.md",
    "a/Dup.md", "bbbb/Dup.md", "x/Twin.md", "y/Twin.md", "p/Near.md", "longer-folder/Near.md", "v1.2 notes.md",
    "Café.md", "image.png", "assets/diagram.svg", "board.canvas", "own/sub/Near2.md", "Z/Near2.md", "no extension",
]  # fmt: skip


def meaning(target: str, source: str = "Source.md") -> str | None:
    return resolve(target, source, named_in_memory(FILES)).path


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
    found = resolve("Twin", "Source.md", named_in_memory(FILES))
    assert found.path == "x/Twin.md"
    assert found.ambiguous == ("x/Twin.md", "y/Twin.md")


def test_a_note_in_the_own_folder_is_no_tie() -> None:
    assert resolve("Twin", "y/Source.md", named_in_memory(FILES)).ambiguous == ()


def test_a_folder_whose_name_only_begins_alike_is_not_the_own_folder() -> None:
    named = named_in_memory(["ab/Note.md", "a-long/Note.md"])
    assert resolve("Note", "a/Source.md", named).path == "ab/Note.md"


def test_a_note_is_looked_up_with_and_without_its_extension_and_a_file_only_with() -> None:
    assert set(lookup_keys("folder/Sub Note.md")) == {"sub note.md", "sub note"}
    assert lookup_keys("assets/Diagram.svg") == ("diagram.svg",)
