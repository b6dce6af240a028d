"""How a call to a service fails, and what of its own words may be shown. Every protocol and package uses this one table.

Services like to repeat what they were sent. Whatever of their sentence also stands in the request is left out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from simplemem.errors import Unavailable

_MOST_CHARACTERS = 200
_MOST_READ = 500
_WINDOW = 12  # a run of so many characters that also stands in the request was taken from it
_SHORTEST = 3  # a shorter text than this would take single letters out of the sentence
_NOT_TEXTS = frozenset({"model", "encoding_format", "input_type", "keep_alive", "output_dtype", "output_dimension"})
_KEY_SHAPED = re.compile(r"\b(?:sk|pa|pk|rk|hf|key|Bearer)[-_ ][\w*.-]{6,}|\b[A-Za-z0-9_-]{40,}", re.ASCII)
_MAY_PASS = frozenset({408, 425, 429})
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
# What local servers say with a 500 when they are well, and the model cannot read this text (llama.cpp, Ollama).
_ABOUT_A_TEXT = re.compile(r"too large to process|context (length|size)|unsupported value: NaN", re.IGNORECASE)


class Refused(Unavailable):
    """The service is well, and will not take this one request: a text that is too long, a value it does not know.

    Asking the same again gives the same answer; asking something else may not.
    """


class Passing(Exception):
    """An attempt failed in a way that may pass. `Patience` tries again, and raises `Unavailable` in the end."""

    def __init__(self, sentence: str, *, hint: str = "", retry_after: float | None = None, **details: Any) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.retry_after = retry_after  # seconds the service asked to be left alone
        self.details = details


def hint(about: str, section: str, url: str = "") -> str:
    """What to do about a failure. `section` is the table of settings that names the service."""
    seconds = "seconds" if section == "rerank" else "timeout_seconds"
    return {
        "timeout": f"{section}.{seconds} says how long it may take.",
        "reach": f"Is the service running? {section}.url says where it is.",
        "url": f"{section}.url is {url}: is that the address of the service, with its /v1 if it has one?",
        "model": f"Are {section}.model and its other settings what the service knows?",
        "key": f"Set {section}.api_key, as a text, {{ env = NAME }} or {{ path = FILE }}.",
        "limit": "The service limits how much is asked; it is asked again later.",
    }[about]


def failure_of(
    name: str, section: str, url: str, status: int, headers: Mapping[str, str], sentence: str
) -> Passing | Unavailable:
    """What a status other than success means. `sentence` is what the service said, as `shown` gives it."""
    spoken = f"{status}, {sentence}" if sentence else str(status)
    if status in _ABOUT_THE_REQUEST or (status == 500 and _ABOUT_A_TEXT.search(sentence)):
        return Refused(f"{name} refused the request: {spoken}", hint=hint("model", section), status=status)
    if status in _MAY_PASS or status >= 500:
        advice = hint("limit", section) if status == 429 else ""
        return Passing(spoken, hint=advice, retry_after=retry_after(headers), status=status)
    if status in (401, 403):
        return Unavailable(f"{name} does not accept the key: {spoken}", hint=hint("key", section), status=status)
    what = "lives at another address" if 300 <= status < 400 else "does not know what was asked"
    return Unavailable(f"{name} {what}: {spoken}", hint=hint("url", section, url), status=status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, or a date; None when the header is missing or makes no sense."""
    value = next((value for key, value in headers.items() if key.lower() == "retry-after"), "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        import email.utils

        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds < 1e9 else None


def shown(body: bytes, sent: Any, key: str | None) -> str:
    """The sentence in an answer that was no success: one short line without the key or a text of the request."""
    text = _without(_sentence(body, key), list(texts_in(sent)))
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
        message = _message(json.loads(text))
    except (ValueError, RecursionError):
        if text.lstrip()[:1] == "<":
            return ""  # a page for a browser
        message = text
    if key:  # before anything is cut off: half a key is no longer seen to be one
        message = message.replace(key, "…")
    printable = "".join(c if c.isprintable() else " " for c in message[:_MOST_READ])
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
    """The sentence, with a mark in place of every run that also stands in one of the texts."""
    covered = bytearray(len(sentence))
    for text in texts:
        size = min(_WINDOW, len(text))
        for at in range(len(sentence) - size + 1) if size >= _SHORTEST else ():
            if sentence[at : at + size] in text:
                covered[at : at + size] = b"\1" * size
    pieces: list[str] = []
    for character, hidden in zip(sentence, covered, strict=True):
        if not hidden:
            pieces.append(character)
        elif not pieces or pieces[-1] != "…":
            pieces.append("…")
    return "".join(pieces)
