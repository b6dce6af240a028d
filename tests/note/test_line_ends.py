"""A form changes only the lines that its user changed, whatever line ends the note has."""

from __future__ import annotations

import pytest

from simplemem.note.line_ends import restore_line_ends, text_for_form


@pytest.mark.parametrize(
    "text",
    [
        "one\ntwo\n",
        "one\r\ntwo\r\n",
        "one\rtwo\r",
        "one\ntwo\r\nthree",
        "\ufeffone\r\n\ntwo",
        "\n\none\n",
        "",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_form_that_nobody_changed_gives_the_same_text(text: str, newline: str) -> None:
    sent = text_for_form(text).replace("\n", newline)
    assert restore_line_ends(text, sent) == text


def test_new_lines_get_the_line_end_of_the_note_and_others_keep_theirs() -> None:
    original = "\ufeffone\r\ntwo\nthree\r\n"
    assert restore_line_ends(original, "one\ntwo\nnew\nthree\n") == (
        "\ufeffone\r\ntwo\nnew\r\nthree\r\n"
    )
    assert restore_line_ends(original, "one\ntwo") == "\ufeffone\r\ntwo"
    assert restore_line_ends("one\r\ntwo", "one\ntwo\nthree") == "one\r\ntwo\r\nthree"
