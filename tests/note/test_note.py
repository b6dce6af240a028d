"""A note is never refused: whatever the bytes, it is served, and says why it may not be rewritten."""

from __future__ import annotations

import pytest

from simplemem.errors import Unreadable
from simplemem.note.note import read_note


def test_a_note_knows_its_bytes_its_header_and_its_body() -> None:
    note = read_note(
        b'\xef\xbb\xbf---\r\ntitle:  Tea \r\nup: "[[Drinks]]"\r\n---\r\n# Oolong #hot\r\n\r\n[[Cup]]'
    )
    assert (
        note.problem is None
        and note.text_property("Title") == "Tea"
        and note.text_property("up") == "[[Drinks]]"
    )
    assert [link.target for link in note.links] == ["Drinks", "Cup"]
    assert [tag.name for tag in note.tags] == ["hot"]
    assert note.content == "# Oolong #hot\r\n\r\n[[Cup]]"
    note.check_editable("tea.md")


@pytest.mark.parametrize(
    ("data", "problem", "line"),
    [
        (b"caf\xe9 in Latin-1", "byte 3 is not UTF-8 text", None),
        ("# Sixteen bits".encode("utf-16"), "binary data or UTF-16", None),
        (b"PK\x03\x04\x00\x00 a zip", "binary data or UTF-16", None),
        (b"---\na: [b\n---\nThe body [[counts]].", "its frontmatter cannot be read", 3),
        (b"---\na: 1\nA: 2\na: 3\n---\n", "occurs twice", 4),
        (b'---\n{"a": 1}\n---\n', "it is JSON", 2),
    ],
)
def test_what_cannot_be_understood_is_served_and_not_rewritten(
    data: bytes, problem: str, line: int | None
) -> None:
    note = read_note(data)
    assert note.problem is not None and problem in note.problem
    with pytest.raises(Unreadable, match=r"a/n\.md cannot be changed") as trouble:
        note.check_editable("a/n.md")
    assert trouble.value.details.get("line") == line
    assert note.text


@pytest.mark.parametrize(
    ("header", "aliases"),
    [
        ("aliases: [Tea, Camellia sinensis]", ("Tea", "Camellia sinensis")),
        ("Aliases: One, with a comma", ("One, with a comma",)),
        (
            "aliases:\n  - 2024-01-15\n  - yes\n  - 42\n  -\n  - ' spaced '",
            ("2024-01-15", "yes", "spaced"),
        ),
        ("alias: Old", ()),
        ("aliases: {a: b}", ()),
    ],
)
def test_aliases_are_what_obsidian_takes_for_one(header: str, aliases: tuple[str, ...]) -> None:
    assert read_note(f"---\n{header}\n---\n".encode()).aliases == aliases
