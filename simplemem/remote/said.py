"""What a service said when it refused, made fit to be shown: short, one line, without a key or a note's text.

Services like to repeat what they were sent. Whatever of their sentence also stands in what was sent is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_MOST_CHARACTERS = 200
_MOST_READ = 500
_WINDOW = 12  # a run of so many characters that also stands in the texts was taken from them
_SHORTEST = 3  # a shorter text than this would take single letters out of the sentence
_NOT_TEXTS = frozenset({"model", "encoding_format", "input_type", "keep_alive", "output_dtype", "output_dimension"})
_KEY_SHAPED = re.compile(r"\b(?:sk|pa|pk|rk|hf|key|Bearer)[-_ ][\w*.-]{6,}|\b[A-Za-z0-9_-]{40,}", re.ASCII)


def said(body: bytes, sent: Any, key: str | None) -> str:
    """The sentence in an answer that was no success; "" when there is none to show."""
    text = _sentence(body, key)
    text = _without(text, list(texts_in(sent)))
    text = _KEY_SHAPED.sub("…", text)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1].rstrip() + "…"


def texts_in(sent: Any) -> Iterator[str]:
    """Every text in a request that may come from a note or a question."""
    if isinstance(sent, str):
        yield " ".join(sent.split())
    elif isinstance(sent, dict):
        for name, value in sent.items():
            if name not in _NOT_TEXTS:
                yield from texts_in(value)
    elif isinstance(sent, (list, tuple)):
        for value in sent:
            yield from texts_in(value)


def _sentence(body: bytes, key: str | None) -> str:
    text = body[:20_000].decode("utf-8", "replace")
    try:
        found = _message(json.loads(text))
    except (ValueError, RecursionError):
        if text.lstrip()[:1] == "<":
            return ""  # a page for a browser
        found = text
    if key:  # before anything is cut off: half a key is no longer seen to be one
        found = found.replace(key, "…")
    printable = "".join(c if c.isprintable() else " " for c in found[:_MOST_READ])
    return " ".join(printable.split())


def _message(answer: Any, depth: int = 0) -> str:
    """The shapes in use: {"error": {"message"}}, {"error": "…"}, {"message"}, {"detail": "…" or [{"msg"}]}."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, dict) and depth < 4:
        for name in ("error", "message", "msg", "detail", "errors", "title"):
            if answer.get(name):
                return _message(answer[name], depth + 1)
    if isinstance(answer, list) and answer and depth < 4:
        return _message(answer[0], depth + 1)
    return ""


def _without(sentence: str, texts: Iterable[str]) -> str:
    covered = bytearray(len(sentence))
    windows = range(max(0, len(sentence) - _WINDOW + 1))
    for text in texts:
        if len(text) >= _WINDOW:
            for at in windows:
                if sentence[at : at + _WINDOW] in text:
                    covered[at : at + _WINDOW] = b"\1" * _WINDOW
        elif len(text) >= _SHORTEST:
            at = sentence.find(text)
            while at >= 0:
                covered[at : at + len(text)] = b"\1" * len(text)
                at = sentence.find(text, at + 1)
    if not any(covered):
        return sentence
    shown: list[str] = []
    for character, hidden in zip(sentence, covered, strict=True):
        if not hidden:
            shown.append(character)
        elif not shown or shown[-1] != "…":
            shown.append("…")
    return "".join(shown)
