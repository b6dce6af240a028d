"""What is read by the words and patterns of `english.toml`: how people change the subject, come back to one, go on or
begin, and what a text is about. Pure: no vectors, no notes."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from simplemem.note.words import STOP_WORDS

_MOST_LABEL: Final = 50
_BACK_WITHIN: Final = 90  # characters of a message in which a return is announced
_ENGLISH: Final = tomllib.loads(
    Path(__file__).with_name("english.toml").read_text(encoding="utf-8")
)
NUMBERS: Final = _ENGLISH["numbers"]
WORDS: Final = {name: frozenset(listed.split()) for name, listed in _ENGLISH["words"].items()}
SYNONYMS: Final = {
    each: word for word, others in _ENGLISH["synonyms"].items() for each in others.split()
}


def pattern(source: str) -> re.Pattern[str]:
    """A pattern as the file writes it, with pieces in their places."""
    while "(?&" in source:
        source = re.sub(r"\(\?&(\w+)\)", lambda piece: _ENGLISH["pieces"][piece[1]], source)
    return re.compile("".join(map(str.lstrip, source.splitlines())))


_EMPTY: Final = STOP_WORDS | WORDS["chat"]
_TASKS: Final = _EMPTY | WORDS["task"]
PATTERNS: Final = {kind: pattern(source) for kind, source in _ENGLISH["patterns"].items()}
RULES: Final[dict[str, list[Any]]] = {
    name: [(*row, pattern(source)) for *row, source in table]
    for name, table in _ENGLISH["rules"].items()
}
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@lru_cache(maxsize=256)
def content_words(text: str) -> tuple[str, ...]:
    """What a text is about: its words in order, without those that hold sentences and chats together."""
    said = (word.replace("’", "'") for word in _WORD.findall(text.lower()))
    return tuple(
        each
        for each in said
        if len(each) > 1 and each not in _EMPTY and each.split("'")[0] not in _EMPTY
    )


def back_to(message: str) -> tuple[str, ...] | None:
    """What a message says it goes back to, in content words: none for "that thing". None if it says no such thing."""
    head = message[:_BACK_WITHIN]
    found = PATTERNS["back"].match(head) or PATTERNS["again"].match(head)
    return content_words(found[1]) if found else None


def _without_cues(message: str) -> str:
    """A message behind what only leads to it: a change of subject, a greeting, the person's own name."""
    while cue := next(
        filter(None, (PATTERNS[kind].match(message) for kind in ("shift", "greeting", "named"))),
        None,
    ):
        message = message[cue.end() :]
    return message


def label_of(message: str) -> str:
    """A label of words that were used: the first clause that says something, from its first such word on."""
    said = _without_cues(message[:1000])
    for clause in (*re.split(r"[.!?:;\n]|, ", said), said):
        found = list(_WORD.finditer(clause))
        telling = [
            word for word in found if content_words(word[0]) and word[0].lower() not in _TASKS
        ]
        if len(telling) > 1:
            start = telling[0].start()
            ends = [word.end() for word in telling if word.end() - start <= _MOST_LABEL]
            label = clause[start : ends[-1] if ends else start + _MOST_LABEL]
            return label[:1].upper() + label[1:]
    return (
        " ".join((said if said.strip() else message).split())[:_MOST_LABEL].strip()
        or "Conversation"
    )


def keywords_of(messages: Sequence[str]) -> list[str]:
    """At most five words: those of most messages, the earliest first."""
    said = [_without_cues(message) or message for message in messages]
    counts = Counter(word for message in said for word in dict.fromkeys(content_words(message)))
    return [word for word, _ in counts.most_common(5)]
