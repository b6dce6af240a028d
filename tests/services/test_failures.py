"""What a service said, without what it repeats of what it was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simplemem.services import failures

KEY = "sk-0123456789abcdef"
NOTE = "My bank's code is 4711 and\nnobody must know that."
SENT = {"model": "tiny-embedder", "input": [NOTE, "short"], "encoding_format": "float"}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"error": {"message": "Rate limit reached", "code": 429}}, "Rate limit reached"),
        ({"error": "model 'tiny-embedder' not found"}, "model 'tiny-embedder' not found"),
        ({"detail": "slow down"}, "slow down"),
        ({"detail": [{"loc": ["input"], "msg": "field required", "input": NOTE}]}, "field required"),
        ({"message": "two\nlines\tand   spaces"}, "two lines and spaces"),
        ({"title": "Bad Gateway"}, "Bad Gateway"),
        ({"unheard": "of"}, ""),
        ([], ""),
        (12, ""),
    ],
)
def test_the_sentence_is_found_in_every_shape_in_use(answer: Any, shown: str) -> None:
    assert failures.shown(json.dumps(answer).encode(), SENT, KEY) == shown


def test_a_page_is_no_sentence_and_plain_text_is() -> None:
    assert failures.shown(b" <html><body>Bad Gateway</body></html>", SENT, KEY) == ""
    assert failures.shown(b"upstream connect error", SENT, KEY) == "upstream connect error"
    assert failures.shown(b"", SENT, KEY) == ""
    assert failures.shown(b"\xff\xfe\x00", SENT, KEY) != "\xff"


@pytest.mark.parametrize(
    "sentence",
    [
        f"cannot embed: {NOTE}",
        f"cannot embed: {' '.join(NOTE.split())}",
        "the text 'My bank's code is 4711' has 9 tokens",
        "…code is 4711 and nobody…",
        "input was: short",
    ],
)
def test_what_was_sent_is_left_out(sentence: str) -> None:
    shown = failures.shown(json.dumps({"error": {"message": sentence}}).encode(), SENT, KEY)
    assert "4711" not in shown
    assert "short" not in shown


@pytest.mark.parametrize(
    "sentence", [f"wrong key {KEY}", f"Bearer {KEY}", "no key pa-AbCdEfGhIjKlMnOp", "sk-abc***xyz123"]
)
def test_a_key_is_left_out_even_one_that_is_not_ours(sentence: str) -> None:
    shown = failures.shown(json.dumps({"error": sentence}).encode(), SENT, KEY)
    assert not any(part in shown for part in (KEY, KEY[3:], "AbCdEf", "xyz123"))


def test_a_key_of_any_shape_is_left_out() -> None:
    assert failures.shown(b'{"error": "who is swordfish?"}', SENT, "swordfish") == "who is …?"


def test_it_is_short_and_one_line() -> None:
    shown = failures.shown(json.dumps({"error": "so it went\u2028 on \x1b[31m and on " * 100}).encode(), SENT, KEY)
    assert len(shown) <= 200
    assert shown.isprintable()
    assert failures.shown(("[" * 100_000).encode(), SENT, KEY).startswith("[")


def test_a_key_at_the_end_of_what_is_read_is_not_shown_by_half() -> None:
    key = "zx81" + "Q7w9" * 6
    body = ("It was sent: " + "compost heap turning " * 30)[:488] + " " + key
    assert "zx81" not in failures.shown(body.encode(), {"input": ["compost heap turning " * 40]}, key)
