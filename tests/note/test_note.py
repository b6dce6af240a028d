"""A note is never refused: whatever the bytes, it is served, and says why it may not be rewritten."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.errors import Unreadable
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages


def test_a_note_knows_its_bytes_its_header_and_its_body() -> None:
    note = read_note(b'\xef\xbb\xbf---\r\ntitle:  Tea \r\nup: "[[Drinks]]"\r\n---\r\n# Oolong #hot\r\n\r\n[[Cup]]')
    assert note.problem is None and note.string("Title") == "Tea" and note.string("up") == "[[Drinks]]"
    assert [link.target for link in note.links] == ["Drinks", "Cup"]
    assert [tag.name for tag in note.tags] == ["hot"]
    assert note.content == "# Oolong #hot\r\n\r\n[[Cup]]"
    note.must_be_editable("tea.md")


@pytest.mark.parametrize(
    ("data", "problem", "line"),
    [
        (b"caf\xe9 in Latin-1", "byte 3 is not UTF-8 text", None),
        ("# Sixteen bits".encode("utf-16"), "binary data or UTF-16", None),
        (b"PK\x03\x04\x00\x00 a zip", "binary data or UTF-16", None),
        (b"---\na: [b\n---\nThe body [[counts]].", "its header cannot be read", 3),
        (b"---\na: 1\nA: 2\na: 3\n---\n", "is there twice", 4),
        (b'---\n{"a": 1}\n---\n', "it is JSON", 2),
    ],
)
def test_what_cannot_be_understood_is_served_and_not_rewritten(data: bytes, problem: str, line: int | None) -> None:
    note = read_note(data)
    assert note.problem is not None and problem in note.problem
    with pytest.raises(Unreadable, match=r"a/n\.md cannot be changed") as trouble:
        note.must_be_editable("a/n.md")
    assert trouble.value.details.get("line") == note.problem_line == line
    assert note.text


@pytest.mark.parametrize(
    ("header", "aliases"),
    [
        ("aliases: [Tea, Camellia sinensis]", ("Tea", "Camellia sinensis")),
        ("Aliases: One, with a comma", ("One, with a comma",)),
        ("aliases:\n  - 2024-01-15\n  - yes\n  - 42\n  -\n  - ' spaced '", ("2024-01-15", "yes", "spaced")),
        ("alias: Old", ()),
        ("aliases: {a: b}", ()),
    ],
)
def test_aliases_are_what_obsidian_takes_for_one(header: str, aliases: tuple[str, ...]) -> None:
    assert read_note(f"---\n{header}\n---\n".encode()).aliases == aliases


@given(
    st.binary(max_size=300) | st.text(max_size=200).map(lambda text: ("---\n" + text).encode("utf-8", "surrogatepass"))
)
def test_no_bytes_break_the_reading(data: bytes) -> None:
    note = read_note(data)
    assert all(0 <= link.start <= link.end <= len(note.text) for link in note.links)
    assert note.tags is not None and note.aliases is not None
    assert all(note.text[passage.start : passage.end].strip() for passage in cut_passages(note.text, note.body))


# Each brings some way of looking for the end of something to look for it again and again.
HOSTILE = {
    "brackets": "'[' * n",
    "images in links": "('![' * 30 + 'a' + '](b)' * 30 + ' ') * (n // 181)",
    "backticks of every length": "' '.join('`' * k for k in range(1, int((2 * n) ** 0.5)))",
    "attributes that never end": "'<a' + ' b=\"' * (n // 4)",
    "parentheses": "'[a](' + '(' * n",
    "lists in quotes": "('> - ' * 20 + 'a\\n') * (n // 82)",
    "definitions that never end": "'[a\\n' * (n // 3)",
    "words without an end": "'a.' * (n // 2)",
    "an ideographic wall": "'語' * n",
    "a deep header": "'---\\n' + '[' * n + '\\n---\\n'",
    "a header that never ends": "'---\\n' + '---a\\n' * (n // 5)",
}
READ_ALL = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (40, 40))
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages
n = 100_000
for source in {list(HOSTILE.values())!r}:
    note = read_note(eval(source).encode())
    found = note.links, note.tags, note.aliases, cut_passages(note.text, note.body)
print("alive")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits there")
def test_no_note_stalls_or_ends_the_program() -> None:
    """All of them take seconds together. One that looks again and again takes minutes alone, and is ended here."""
    done = subprocess.run([sys.executable, "-c", READ_ALL], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
