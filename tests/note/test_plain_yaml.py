"""The reader of plain headers agrees with libyaml on values and places, or says nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.header import Document, RefusedError, read_plain_yaml, read_yaml

OPENING = "---\n"
KEYS = st.sampled_from(["title", "a b", "1", "null", "é", "x-y", "a--b", "k_", "٣", "true", "n" * 100, "spaced "])
CHARACTERS = [*"ab12 .:/+(),'&!?=;@_[]{}\"|%~^$*<>-#é", "あ", "𝒳", "٣", "null", "true", "0x1f", "1e5", "- ", ": ", "\t"]
TEXTS = st.lists(st.sampled_from(CHARACTERS), max_size=7).map("".join)
VALUES = st.one_of(
    TEXTS,
    st.builds(str.__add__, st.sampled_from("aZ1é٣"), TEXTS),
    TEXTS.map(lambda text: '"' + text.replace('"', "") + '"'),
    TEXTS.map(lambda text: "'" + text.replace("'", "") + "'"),
)
GAPS = st.sampled_from([" ", " ", " ", "  ", ""])
ITEMS = st.builds(
    "{}-{}{}{}\n".format, st.sampled_from(["  ", "  ", "", "    "]), GAPS, VALUES, st.sampled_from(["", " "])
)
ENTRIES = st.one_of(
    st.builds("{}:{}{}\n".format, KEYS, GAPS, VALUES),
    st.builds(lambda key, items: f"{key}:\n{''.join(items)}", KEYS, st.lists(ITEMS, max_size=3)),
)
HEADERS = st.lists(ENTRIES, min_size=1, max_size=4).map("".join)


def both(header: str) -> tuple[Document | None, Document | str]:
    text = f"{OPENING}{header}---\nbody"
    start, end = len(OPENING), len(OPENING) + len(header)
    plain = read_plain_yaml(text, start, end)
    try:
        return plain, read_yaml(text, start, end)
    except RefusedError as refused:
        return plain, refused.message


@given(HEADERS)
def test_what_the_plain_reader_reads_is_what_libyaml_reads(header: str) -> None:
    plain, full = both(header)
    # As text: 1, 1.0 and true are equal to Python.
    assert plain is None or repr(plain) == repr(full)


def test_the_headers_of_most_notes_are_read_plainly() -> None:
    for header in (
        "title: Notes on Ada\ntags:\n  - person\n  - status/open\ncreated: 2026-01-24T12:00:00\n",
        "aliases:\n- one\n- 'two three'\nrelated: \"[[Other note#Part]]\"\nempty:\ncount: 12\n",
    ):
        plain, full = both(header)
        assert plain is not None and repr(plain) == repr(full)


def test_whatever_is_more_than_that_is_left_to_libyaml() -> None:
    for header in (
        "title: a # comment\n", "title: a\n  second line\n", "title: a\n- item\n", "list:\n  - a\n    - b\n",
        "tags: [a, b]\n", 'title: "a \\" b"\n', "title: a\ntitle: b\n", "title: a: b\n", "title:a\n",
        "x: &anchor a\n", "x: |\n  text\n", "title: a\r\n", "",
    ):  # fmt: skip
        assert both(header)[0] is None, header
