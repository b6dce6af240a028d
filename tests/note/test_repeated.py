"""A key that stands twice in a header is left there once where both say the same, and no other byte changes."""

from __future__ import annotations

import pytest

from simplemem.errors import Unreadable
from simplemem.note.header import repeated_keys
from simplemem.note.note import read_note
from simplemem.note.properties import without_repeated


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\na: 1\nb: 2\na: 1\n---\ntext", "---\na: 1\nb: 2\n---\ntext"),
        ("---\r\na: 1\r\na: 1\r\n---\r\ntext", "---\r\na: 1\r\n---\r\ntext"),
        ("\ufeff---\na: x\na: 'x'\n---\n", "\ufeff---\na: x\n---\n"),
        ("---\ntags: [a, b]\nt: 1\ntags:\n  - a\n  - b\n---\n", "---\ntags: [a, b]\nt: 1\n---\n"),
        ("---\ntags:\n- a\n- b\ntags:\n- a\n- b\nz: 1\n---\n", "---\ntags:\n- a\n- b\nz: 1\n---\n"),
        ("---\na: 1\na: 1\na: 1\n---\n", "---\na: 1\n---\n"),
        ("---\na: 1\n# of b\nb: 2\na: 1\n# of c\n\nc: 3\n---\n", "---\na: 1\n# of b\nb: 2\n# of c\n\nc: 3\n---\n"),
        ("---\na: |\n  one\n  two\nb: x\na: |\n  one\n  two\n---\n", "---\na: |\n  one\n  two\nb: x\n---\n"),
        (
            '---\n"a": 1\na: 1\nb: "---"\n---\n---\na: 1\na: 1\n---\n',
            '---\n"a": 1\nb: "---"\n---\n---\na: 1\na: 1\n---\n',
        ),
        ("---\na:\na:\n---\n", "---\na:\n---\n"),
    ],
)
def test_the_later_of_two_equal_lines_goes(before: str, after: str) -> None:
    assert read_note(before.encode()).problem is not None
    assert all(each.equal for each in repeated_keys(before))
    assert without_repeated(before) == after
    assert read_note(after.encode()).problem is None


@pytest.mark.parametrize(
    "text",
    [
        "---\na: 1\na: 2\n---\n",
        "---\na: 1\na: '1'\n---\n",
        "---\na: 1\na: 1\nb: [\n---\n",
        "---\na: 1\na: 1\n  more: x\n---\n",
        "---\na: &x 1\na: *x\n---\n",
        "---\na: 1\na: 1\n--- text\n",
        "no header\n",
        "---\na: 1\na: 1\n",
    ],
)
def test_where_they_differ_or_more_is_wrong_nothing_is_done(text: str) -> None:
    with pytest.raises(Unreadable):
        without_repeated(text)


def test_the_lines_are_told() -> None:
    (told,) = repeated_keys("---\na: 1\nb: 1\n\na: 2\n---\n")
    assert (told.key, told.first_line, told.line, told.equal) == ("a", 2, 5, False)


def test_a_header_in_order_repeats_nothing() -> None:
    assert repeated_keys("---\na: 1\nb: {a: 1}\n---\na: 1\na: 1\n") == ()
