"""Names in code are found by their parts, and what is written as one is asked for as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.words import may_hold_names, parts_of_names, sequences_in


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("getUserName", ["get", "User", "Name"]),
        ("class HTTPServer2:", ["HTTP", "Server", "2"]),
        ("PascalCase, and once more PascalCase", ["Pascal", "Case"]),
        ("written in C++", ["cplusplus", "cpp"]),
        ("not C, but C#.", ["csharp"]),
    ],
)
def test_a_name_has_parts(text: str, parts: list[str]) -> None:
    assert parts_of_names(text).split() == parts


@pytest.mark.parametrize(
    "text",
    ["Plain words.", "SHOUTING", "PDFs and URLs", "an iPhone", "5K run", "aB3xZq9LmPw", "a1B2c3" * 20, "utf8", ""],
)
def test_other_words_have_none(text: str) -> None:
    assert parts_of_names(text) == ""


@given(st.text(st.sampled_from("aAbBcC1 _+#é東"), max_size=30))
def test_the_quick_look_misses_nothing(text: str) -> None:
    from simplemem.note.words import _SIGNED_NAME, _parted

    if _parted(text) or _SIGNED_NAME.search(text):
        assert may_hold_names(text)


@pytest.mark.parametrize(
    ("question", "sequence"),
    [
        ("where is path/to/file.py read", ("path", "to", "file", "py")),
        ("what does snake_case mean", ("snake", "case")),
        ("released in v1.2.3?", ("v1", "2", "3")),
        ("released in v1.2.3?", ("1", "2", "3")),
        ("released in 1.2.3", ("v1", "2", "3")),
        ("who calls foo.bar() here", ("foo", "bar")),
        ("the meeting of 2026-01-24", ("2026", "01", "24")),
        ("kebab-case", ("kebab", "case")),
        ("what is getUserName for", ("get", "user", "name")),
    ],
)
def test_what_is_written_as_one_is_asked_as_one(question: str, sequence: tuple[str, ...]) -> None:
    assert sequence in sequences_in(question)


@pytest.mark.parametrize(
    "question", ["a well-known and/or plain question", "see https://example.com/a/b for it", "Anna's boat, isn't it?"]
)
def test_prose_is_not(question: str) -> None:
    assert sequences_in(question) == []
