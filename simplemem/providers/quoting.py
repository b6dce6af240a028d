"""Quote a service's message about a failure, without keys and texts of the request in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_MAX_BODY_BYTES = 20_000
_MAX_READ_CHARACTERS = 500  # of the message, in which texts of the request are looked for
_MAX_SHOWN_CHARACTERS = 200
_MAX_NESTING = 4  # of JSON objects and lists around the message
# The fields that may contain the message; the first one that is present and not empty is used.
_MESSAGE_FIELDS = ("error", "message", "msg", "detail", "errors", "title")
# The fields of a request that contain no text of a note or a query. Any other may.
_FIELDS_WITHOUT_TEXTS = frozenset(
    (
        "model",
        "encoding_format",
        "format",
        "input_type",
        "keep_alive",
        "options",
        "response_format",
        "role",
        "tool_choice",
        "tools",
    )
)
# If this many characters in a row are also in a text of the request, the message repeats the text.
_REPEATED_CHARACTERS = 12
_MIN_TEXT_LENGTH = 3  # a shorter text may be in a message by chance
# A known prefix of keys with at least six characters after it, or a run of at least 40.
_KEY_SHAPED = re.compile(
    r"\b(?:sk|pa|pk|rk|hf|key|Bearer)[-_ ][\w*.-]{6,}|\b[A-Za-z0-9_-]{40,}", re.ASCII
)


def quote_error(body: bytes, request: Mapping[str, Any], key: str | None) -> str:
    """Return the message in the answer to a failed request, as one line of at most 200 characters.

    `body` is the answer, and `request` is the JSON object that was sent. `key`, and whatever looks
    like a key, is replaced by "…"; `key` is None if none was sent. Returns "" if there is no
    message, or if it repeats a text of the request.
    """
    message = _find_message(body)
    if key:
        # The key is replaced before the message is cut, because half a key is not recognized.
        message = message.replace(key, "…")
    sentence = _one_line(message[:_MAX_READ_CHARACTERS])
    if any(_repeats(sentence, text) for text in _texts_of(request)):
        return ""

    sentence = _KEY_SHAPED.sub("…", sentence)
    if len(sentence) > _MAX_SHOWN_CHARACTERS:
        sentence = sentence[: _MAX_SHOWN_CHARACTERS - 1].rstrip() + "…"
    return sentence


def _find_message(body: bytes) -> str:
    """Return the message in a JSON answer, or an answer in plain text as it is.

    The JSON has a form such as {"error": {"message": "…"}}, {"error": "…"}, {"message": "…"} or
    {"detail": [{"msg": "…"}]}. Returns "" for a web page, and if no message is found.
    """
    text = body[:_MAX_BODY_BYTES].decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        is_page = text.lstrip().startswith("<")
        return "" if is_page else text

    for _ in range(_MAX_NESTING):
        if isinstance(value, dict):
            candidates = [value[name] for name in _MESSAGE_FIELDS if value.get(name)]
            value = candidates[0] if candidates else ""
        elif isinstance(value, list):
            value = value[0] if value else ""
    return value if isinstance(value, str) else ""


def _one_line(text: str) -> str:
    """Return a text as one line, with single spaces and none at its ends.

    Line breaks, and characters that cannot be printed, become spaces.
    """
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())


def _texts_of(value: object) -> Iterator[str]:
    """Yield the texts in a request, or in a part of one, except those of settings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _FIELDS_WITHOUT_TEXTS:
                yield from _texts_of(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts_of(part)


def _repeats(sentence: str, text: str) -> bool:
    """Return whether a message, which is one line, repeats a text of the request.

    The text may be in it as it is, or as JSON writes it in ASCII: "\\u00fc" for "ü".
    """
    if _shares_characters(sentence, _one_line(text)):
        return True
    return not text.isascii() and _shares_characters(sentence, json.dumps(text)[1:-1])


def _shares_characters(sentence: str, text: str) -> bool:
    """Return whether a sentence contains 12 characters in a row that are also in a text.

    A text of fewer than 12 characters must be in the sentence as a whole. False for a text of fewer
    than 3.
    """
    size = min(_REPEATED_CHARACTERS, len(text))
    if size < _MIN_TEXT_LENGTH:
        return False
    starts = range(len(sentence) - size + 1)
    return any(sentence[start : start + size] in text for start in starts)
