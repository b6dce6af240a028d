"""Headers as people write them: what they mean, how one property changes, and what is left alone."""

from __future__ import annotations

import math
from typing import Any

import frontmatter
import pytest
import yaml

from simplemem.errors import Invalid, SimplememError, Unreadable
from simplemem.note.header import Scalar, read_header
from simplemem.note.properties import remove_property, replace_scalar, set_property
from simplemem.note.yaml_writer import is_plain_safe, render_header, yaml_handler


def note(header: str, body: str = "# Body\n") -> str:
    return f"---\n{header}\n---\n{body}"


# Each of them is a header that some tool damages when it writes the note again.
TRICKY: dict[str, tuple[str, dict[str, Any]]] = {
    "folded block": ("---\na: >\n  one\n  two\n# c\nb: 1\n---\n", {"a": "one two\n", "b": 1}),
    "block with indentation": ("---\na: |2\n    one\nb: 1\n---\n", {"a": "  one\n", "b": 1}),
    "flow list over lines": ("---\ntags: [a,\n  b,\n]\nx: 1\n---\n", {"tags": ["a", "b"], "x": 1}),
    "unquoted wikilink": ("---\nup: [[Note]]\nx: 1\n---\n", {"up": [["Note"]], "x": 1}),
    "mixed line ends": ("---\na: 1\r\nb: 2\n---\r\nbody\n", {"a": 1, "b": 2}),
    "tab after the colon": ("---\ntitle:\tA\n---\n", {"title": "A"}),
    "next line and form feed": ('---\na: "x\x85y"\nb: p\x0cq\n---\n', {"a": "x\x85y", "b": "p\x0cq"}),
    "value on the next line": ("---\na: # c\n  text\nb: 1\n---\n", {"a": "text", "b": 1}),
    "document end": ("---\na: 1\nb: 2\n...\n---\n", {"a": 1, "b": 2}),
    "dashes inside": ("---\na: |\n  ---\n  b\nc: '--- x'\n---\n---\n", {"a": "---\nb\n", "c": "--- x"}),
    "indented throughout": ("---\n  a: 1\n  b:\n    - x\n---\n", {"a": 1, "b": ["x"]}),
    "dates and times": (
        "---\ncreated: 2024-01-15T10:30:00+02:00\nat: 12:30\nd: 2024-02-30\n---\n",
        {"created": "2024-01-15T10:30:00+02:00", "at": "12:30", "d": "2024-02-30"},
    ),
    "private characters": ("---\na: \U000f0000\u2028\x80\n---\n", {"a": "\U000f0000\u2028\x80"}),
    "same key but for case": ("---\nTags: [a]\ntags: [b]\n---\n", {"Tags": ["a"], "tags": ["b"]}),
}  # fmt: skip

tricky = pytest.mark.parametrize(("text", "meant"), TRICKY.values(), ids=TRICKY)


# ------------------------------------------------------------------ what a header means


@tricky
def test_a_tricky_header_is_read(text: str, meant: dict[str, Any]) -> None:
    header = read_header(text)
    assert (header.style, header.problem) == ("yaml", None)
    assert repr(header.properties) == repr(meant)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None), ("nULL", "nULL"),
        ("true", True), ("True", True), ("TRUE", True), ("false", False), ("tRUE", "tRUE"),
        ("yes", "yes"), ("No", "No"), ("on", "on"), ("off", "off"), ("y", "y"), ("=", "="), ("<<", "<<"),
        ("12", 12), ("-12", -12), ("+12", 12), ("010", 10), ("09", 9), ("0o17", 15), ("0x1F", 31), ("0b101", "0b101"),
        ("1_000", "1_000"), ("12:30", "12:30"), ("1:30:00", "1:30:00"), ("1e3", 1000.0), ("1.", 1.0), (".5", 0.5),
        ("-1.5E-2", -0.015), (".", "."), ("1e", "1e"), ("٣", "٣"), (".inf", math.inf), ("-.INF", -math.inf),
        (".NaN", math.nan), (".iNF", ".iNF"), ("2024-01-15 10:00:00", "2024-01-15 10:00:00"), ("9" * 5000, "9" * 5000),
        ("0x" + "f" * 5000, "0x" + "f" * 5000), ("1e999", math.inf),
    ],
)  # fmt: skip
def test_plain_values_follow_yaml_1_2(source: str, value: Any) -> None:
    assert repr(read_header(note(f"key: {source}")).get("key")) == repr(value)


@pytest.mark.parametrize(
    "text",
    ["", "text", "\n---\na: 1\n---\n", "---", "---\n", "---\na: 1\n", "--- x\na: 1\n---\n",
    "----\na: 1\n---\n", " ---\na: 1\n---\n"],
)  # fmt: skip
def test_without_both_fences_on_their_lines_all_is_body(text: str) -> None:
    header = read_header(text)
    assert (header.style, header.body_start, header.properties, header.problem) == (
        "none",
        0,
        {},
        None,
    )


@pytest.mark.parametrize(
    ("header", "line", "column"),
    [
        ("tags: [unclosed\nb: 1", 3, 2),
        ("title: {{title}}", 2, 9),
        ("a: 1\n\na: 2", 4, 1),
        ("x:\n  a: 1\n  a: 2", 4, 3),
        ("- a\n- b", 2, 1),
        ("a: 1\nb: *x", 3, 4),
        ("a: !mine text", 2, 4),
        ("a: 1\n---x: y\n--- more", 4, 1),
        ("a: \0", 2, 4),
        ('a: "\\ud800"', 2, 7),
        ("? [a, b]\n: c", 2, 3),
        ("a: 1\n? b\n: c", 3, 3),
        ("a: " + "[" * 16 + "]" * 16, 2, 19),
    ],
)
def test_a_broken_header_says_where_and_the_body_still_counts(
    header: str, line: int, column: int
) -> None:
    for text in (note(header), "\ufeff" + note(header), note(header).replace("\n", "\r\n")):
        found = read_header(text)
        assert found.style == "broken"
        assert found.problem is not None
        assert (found.properties, found.scalars) == ({}, ())
        assert found.problem is not None
        assert (found.problem.line, found.problem.column) == (line, column), found.problem
        assert text[found.body_start :].startswith("# Body")


@pytest.mark.parametrize(
    "header",
    [
        "a: [unclosed",
        "- x",
        "a: 1\na: 2",
        '{"a": 1}',
        "{a: 1}",
        "title: {{title}}",
        "a: &x 1",
        "a: \0",
        "@",
    ],
)
def test_what_cannot_be_read_safely_is_never_rewritten(header: str) -> None:
    text = note(header)
    changes = [
        lambda: set_property(text, "a", 2),
        lambda: set_property(text, "new", 2),
        lambda: remove_property(text, "a"),
        lambda: set_property(text, "tags", ["x"]),
        lambda: replace_scalar(text, Scalar(("a",), "x", 5, 6, 5), "y"),
    ]
    for change in changes:
        with pytest.raises(Unreadable) as failure:
            change()
        assert failure.value.details["line"] == read_header(text).problem.line  # type: ignore[union-attr]
        assert failure.value.hint


def test_json_and_other_braces_are_read_and_not_rewritten() -> None:
    for text, found in (
        (
            '{\n  "tags": ["journal"],\n  "n": 1.5,\n  "a": "yes"\n}',
            {"tags": ["journal"], "n": 1.5, "a": "yes"},
        ),
        ("{a: yes, b: [1, 2]}", {"a": "yes", "b": [1, 2]}),
    ):
        header = read_header(note(text))
        assert header.problem is not None and (header.style, header.properties) == ("yaml", found)
        assert "yes" in [scalar.value for scalar in header.scalars]


HOSTILE = {
    "brackets in a value": "a: " + "[" * 100_000,
    "dashes": "- " * 100_000,
    "questions": "? " * 100_000,
    "deep maps": "".join(" " * depth + "a:\n" for depth in range(600)),
    "an alias bomb": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n<<: [*c, *c]",
    "many values": "a: [" + "b," * 100_000 + "]",
    "too long": "a: " + "x" * 300_000,
    "half a character": '{"a": "\\ud83d"}',
}


@pytest.mark.parametrize("header", HOSTILE.values(), ids=HOSTILE)
def test_a_poisoned_header_is_refused(header: str) -> None:
    assert read_header(note(header)).style == "broken"
    assert read_header("---\n" + header).style == "none"


# ------------------------------------------------------------------ texts and their places


def test_every_text_has_its_place() -> None:
    text = "\ufeff" + note(
        "up: \"[[Target]]\"\nrelated:\n  - 'It''s' # c\n  - plain 🚀\n  - \"x\"\n"
        'm: {k: v}\nn: 5\nb: |\n  [[Y]]\ne: "\\x41"'
    )
    found = read_header(text).scalars
    shown = [
        (scalar.path, scalar.value, text[scalar.start : scalar.end], scalar.verbatim >= 0)
        for scalar in found
    ]
    assert shown == [
        (("up",), "[[Target]]", '"[[Target]]"', True),
        (("related", "0"), "It's", "'It''s'", False),
        (("related", "1"), "plain 🚀", "plain 🚀", True),
        (("related", "2"), "x", '"x"', True),
        (("m", "k"), "v", "v", True),
        (("b",), "[[Y]]\n", "|\n  [[Y]]", False),
        (("e",), "A", '"\\x41"', False),
    ]
    for scalar in found:
        assert scalar.verbatim < 0 or text.startswith(scalar.value, scalar.verbatim)


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("up: '[[A]]' # c", "[[B's]]", "up: '[[B''s]]' # c"),
        ("up: A", "[[B]]", 'up: "[[B]]"'),
        ("up: [[A]]", "a, b", 'up: [["a, b"]]'),
        ("up: >-\n  [[A\n  B]]", "[[C]]", 'up: "[[C]]"'),
    ],
)
def test_a_text_is_replaced_in_its_own_quotes(before: str, value: str, after: str) -> None:
    (scalar,) = read_header(note(before)).scalars
    assert replace_scalar(note(before), scalar, value) == note(after)
    with pytest.raises(Unreadable):
        replace_scalar(note("x: 1\n" + before), scalar, value)  # it is not there any more


# ------------------------------------------------------------------ how an edit looks


@tricky
def test_a_change_of_a_tricky_header_leaves_the_other_properties(
    text: str, meant: dict[str, Any]
) -> None:
    assert remove_property(set_property(text, "reviewed", True), "reviewed") == text
    for key, there in meant.items():
        assert set_property(text, key, there) == text
        without = remove_property(text, key)
        assert list(read_header(without).properties) == [name for name in meant if name != key]
        assert without.count("\n#") == text.count("\n#")
        for value in ("a: b", None, ["one", "two"], {"k": "v"}):
            assert read_header(set_property(text, key, value)).properties == {**meant, key: value}


@pytest.mark.parametrize(
    ("before", "key", "value", "after"),
    [
        ("a: 1 # c\nb: 2", "a", "x", "a: x # c\nb: 2"),
        ('a: "x"', "a", "12:30", 'a: "12:30"'),
        ("a: x", "a", "yes", 'a: "yes"'),
        ("a: # c", "a", "x", "a: x # c"),
        ("a:\nb: 1", "a", ["x"], "a:\n  - x\nb: 1"),
        ("a: x # c\nb: 1", "a", ["x", "z"], "a: # c\n  - x\n  - z\nb: 1"),
        ("a: # c\n  - x # d\nb: 1", "a", "z", "a: z # c\nb: 1"),
        ("a: |\n  x\n\nb: 1", "a", "z", "a: z\n\nb: 1"),
        ("t:\n  - a # 1\n  - b # 2\n  - c # 3", "t", ["a", "c"], "t:\n  - a # 1\n  - c # 3"),
        (
            "t:\n  - a # 1\n  - b # 2\n  - c # 3",
            "t",
            ["a", "x", "c"],
            "t:\n  - a # 1\n  - x # 2\n  - c # 3",
        ),
        ("t:\n  -   a\n  -   b", "t", ["new", "a", "b"], "t:\n  -   new\n  -   a\n  -   b"),
        ("t: [a, b , c] # x", "t", ["a", "c"], "t: [a, c] # x"),
        ("t: [a, b]", "t", ["a", "b", "c: d"], 't: [a, b, "c: d"]'),
        ("t: [ a,\n  'b',\n]", "t", ["a", "b", "x"], "t: [a, 'b', x]"),
        ("  a: 1\n  b: 2", "new", ["x"], "  a: 1\n  b: 2\n  new:\n    - x"),
        ("a: 1", "yes", "no", 'a: 1\n"yes": "no"'),
        ("tags:\n  - a # c\n\nx: 1", "tags", ["a", "b"], "tags:\n  - a # c\n  - b\n\nx: 1"),
        ("t: {a: 'b', c}", "t", {"a": "x", "c": True}, "t: {a: x, c: true}"),
        ("t: {a: 'b'}", "t", {"a": "b", "c": "d, e"}, "t: {a: 'b', c: \"d, e\"}"),
        (
            "t:\n    a: 1 # c\n    b: 2\nx: 1",
            "t",
            {"a": 5, "b": 2},
            "t:\n    a: 5 # c\n    b: 2\nx: 1",
        ),
        ("t:\n    a: 1 # c\nx: 1", "t", {"a": 1, "c": 3}, "t:\n    a: 1 # c\n    c: 3\nx: 1"),
        ("t: {a: 1, b: 2, c: 3}", "t", {"a": 1, "c": 3}, "t: {a: 1, c: 3}"),
        ("t:\n  a: 1\n  # c\n  b: 2\nx: 1", "t", {"b": 2}, "t:\n  # c\n  b: 2\nx: 1"),
        ("t:\n  a: 1\nx: 1", "t", {}, "t: {}\nx: 1"),
    ],
)
def test_an_edit_follows_the_way_of_the_note(before: str, key: str, value: Any, after: str) -> None:
    assert set_property(note(before), key, value) == note(after)
    crlf = note(before).replace("\n", "\r\n")
    assert set_property(crlf, key, value) == note(after).replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "---\na: 1\n---\n"),
        ("body", "---\na: 1\n---\nbody"),
        ("\ufeffbody\r\n", "\ufeff---\r\na: 1\r\n---\r\nbody\r\n"),
        ("---\nnot closed", "---\na: 1\n---\n---\nnot closed"),
        ("\n---\nb: 1\n---\n", "---\na: 1\n---\n\n---\nb: 1\n---\n"),
        ("---\n---\nbody", "---\na: 1\n---\nbody"),
        ("---\r\n---", "---\r\na: 1\r\n---"),
        ("---\nb: 1\n...\n---\n", "---\nb: 1\na: 1\n...\n---\n"),
    ],
)
def test_a_header_is_made_or_grows(before: str, after: str) -> None:
    assert set_property(before, "a", 1) == after


# ------------------------------------------------------------------ values


def test_a_new_header_looks_like_one_of_obsidian() -> None:
    properties = {
        "title": "A: b", "aliases": [], "tags": ["todo", "status/done"], "created": "2026-01-24T12:00:00", "rating": 4.5,
        "done": False, "up": "[[Note]]", "empty": None, "note": "one\ntwo",
    }  # fmt: skip
    assert render_header(properties) == (
        '---\ntitle: "A: b"\naliases: []\ntags:\n  - todo\n  - status/done\ncreated: 2026-01-24T12:00:00\n'
        'rating: 4.5\ndone: false\nup: "[[Note]]"\nempty:\nnote: "one\\ntwo"\n---\n'
    )
    assert (
        frontmatter.loads(render_header(properties) + "Body.\n", handler=yaml_handler()).metadata
        == properties
    )
    assert render_header({}) == "---\n---\n"
    assert render_header({"a": 1}, "\r\n") == "---\r\na: 1\r\n---\r\n"


@pytest.mark.parametrize(
    "text",
    ["two words", "a:b", "a#b", "été", "🚀", "it's", 'say "x"', "a - b", "1.2.3", "2026-01-24", "2026-01-24T12:00:00+02:00",
     "C++", "100%", "a, b", "v1_0", "path/to/x"],
)  # fmt: skip
def test_ordinary_texts_stay_plain(text: str) -> None:
    assert is_plain_safe(text)
    assert f"k: {text}\n" in render_header({"k": text})


@pytest.mark.parametrize(
    "text",
    ["", " x", "x ", "yes", "ON", "y", "null", "~", "true", "12", "1.5", "1e3", "0x1F", "0b1", "010", "1_000", "12:30",
     "1:30:00.5", "2024-02-30", "2024-1-5", "2024-01-15 10:00", ".inf", "=", "<<", "- x", "? x", "[[x]]", "{x}", "#tag",
     "a: b", "a:", "a #b", "*x", "&x", "!x", "|", ">", "'x", '"x', "%x", "@x", "`x`", "a\nb", "a\tb", "a\u2028b", "a\x85b",
     "\ufeffa", "a\0b", "...", "\u00a0x", "a\x7f"],
)  # fmt: skip
def test_texts_that_could_be_misread_get_quotes(text: str) -> None:
    header = render_header({"k": text, "l": [text]})
    assert not is_plain_safe(text)
    assert header.startswith('---\nk: "')
    assert read_header(header).properties == {"k": text, "l": [text]}
    assert yaml.safe_load(header.replace("---\n", "")) == {"k": text, "l": [text]}


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("half \ud83d", Invalid), ([["nested"]], Invalid), ({"a": ["b"]}, Invalid), ({1: "x"}, Invalid),
        (object(), Invalid), ],
)  # fmt: skip
def test_values_no_header_can_hold_are_refused(value: Any, error: type[SimplememError]) -> None:
    with pytest.raises(error) as failure:
        set_property(note("a: 1"), "k", value)
    assert failure.value.hint


@pytest.mark.parametrize("key", ["", " a", "a ", "a\nb", "a\tb", "\0", "x" * 501, "\ud800"])
def test_names_no_header_can_hold_are_refused(key: str) -> None:
    with pytest.raises(Invalid):
        set_property(note("a: 1"), key, "x")


@pytest.mark.parametrize(
    "key",
    [
        "a: b",
        "a:b",
        "#x",
        "- x",
        "[x]",
        "{x}",
        "yes",
        "12",
        "? x",
        "...",
        "'q'",
        "x" * 500,
        "ключ",
        "a,b",
        "x #y",
    ],
)
def test_odd_names_are_quoted(key: str) -> None:
    assert read_header(set_property(note("a: 1"), key, "x")).properties == {"a": 1, key: "x"}
    assert read_header(set_property(note("t: {a: 1}"), "t", {"a": 1, key: "x"})).get("t") == {
        "a": 1,
        key: "x",
    }


def test_tuples_and_texts_of_other_types_are_written_as_what_they_are() -> None:
    class Word(str):
        __slots__ = ()

    assert read_header(set_property("", "k", (Word("a"), 1))).get("k") == ["a", 1]


def test_a_header_with_every_private_character_is_refused() -> None:
    private = "".join(map(chr, range(0xF0000, 0xFFFFE)))
    header = read_header(f"---\na: \x01{private}\n---\n")
    assert header.problem is not None and "private use" in header.problem.message


def test_a_scalar_of_another_text_is_refused() -> None:
    scalar = read_header("---\nrelated:\n  - one\n  - two\n---\n").scalars[1]
    with pytest.raises(Unreadable, match="not in this text"):
        replace_scalar("---\nother: one\n---\n", scalar, "x")
