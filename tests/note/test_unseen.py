"""What a reader does not see is counted; what his writing needs is not."""

from __future__ import annotations

import pytest

from simplemem.note.unseen import find_unseen


def kinds(text: str) -> dict[str, int]:
    return {found.kind: found.count for found in find_unseen(text)}


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        ("pass\u200bword", "character", 1),
        ("a\u200cb", "character", 1),
        ("a\u2060\u2061\u2062\u2063\u2064b", "character", 5),
        ("a \u3164\uffa0 b", "character", 2),
        ("a\xad\xad\xad\xadb", "character", 4),
        ("A\ufe00\ufe01\ufe02\ufe03", "character", 4),
        ("\U0001f600\U000e0100\U000e0151\U000e0162", "character", 3),
        ("left\u200eright", "character", 1),
        ("\u202egnp.exe", "character", 1),
        ("a \u2066b\u2069 c", "character", 2),
        ("hello\U000e0049\U000e0067\U000e006e", "character", 3),
        ("\x1b[31mred", "character", 1),
        ("a <!-- b --> c <!--", "comment", 2),
        ("a %%b%% c\n%%\nd\n%%\n", "comment", 2),
        ("`%% inline %%`", "comment", 1),
    ],
)
def test_what_is_not_seen_is_counted(text: str, kind: str, count: int) -> None:
    assert kinds(text) == {kind: count}


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffA note that begins with a byte order mark.",
        "A family \U0001f468\u200d\U0001f469\u200d\U0001f467 and a burning heart \u2764\ufe0f\u200d\U0001f525.",
        "A rainbow \U0001f3f3\ufe0f\u200d\U0001f308, a key 1\ufe0f\u20e3, a coder \U0001f469\U0001f3fd\u200d\U0001f4bb.",
        "England \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with its joiner
        "\u0915\u094d\u200d\u0937 \u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Hindi and Sinhala
        "\u05e9\u05dc\u05d5\u05dd \u200fC++\u200e \u05e2\u05d5\u05dc\u05dd",  # Hebrew around a Latin word
        "\u8fbb\U000e0100 and \u845b\U000e0101",  # ideographs in their variants
        "Donau\xaddampf\xadschiff",
        "```mermaid\ngraph TD\n%% a comment of the diagram\n<!-- and of the page -->\n```\n",
        "\u4e2d\u6587\u7b14\u8bb0\u3000\u65e5\u672c\u8a9e",
    ],
)
def test_what_writing_needs_is_not_counted(text: str) -> None:
    assert kinds(text) == {}


def test_the_first_of_each_kind_has_its_line() -> None:
    found = {each.kind: each for each in find_unseen("a\nb\u200b\nc\u200b\n<!-- d -->\n", first_line=5)}
    assert (found["character"].count, found["character"].line) == (2, 6)
    assert found["comment"].line == 8
    assert found["character"].said() == "2 characters that readers do not see"
    assert found["comment"].said() == "1 comment that readers do not see"
