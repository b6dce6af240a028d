from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from simplemem.note.words import STOP_WORDS

CHAT = STOP_WORDS | frozenset(
    "want build help plan need make like please anyway way different topic note something else back let tell would could what which".split()
)


def content_words(text: str) -> list[str]:
    return [w for w in re.findall(r"[^\W_][\w'-]*", text.lower()) if w not in CHAT]


def label_of(message: str) -> str:
    m = [x for x in re.finditer(r"[^\W_][\w'-]*", message) if x[0].lower() not in CHAT][:5]
    return (
        (message[m[0].start() : m[-1].end()] if m else " ".join(message.split())[:40] or "Talk")[:50]
        .replace("\n", " ")
        .strip()
        .capitalize()
    )


def keywords_of(messages: Sequence[str]) -> list[str]:
    return [w for w, _ in Counter(w for m in messages for w in content_words(m) if len(w) > 3).most_common(5)]
