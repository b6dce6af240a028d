"""Entries for tests of what is pure, made of a few words each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simplemem.kinds.learned.entries import Entry, Tie
from simplemem.kinds.learned.likeness import Likeness, likeness_of


def entry(id_: str, content: str = "", kind: str = "insight", **more: Any) -> Entry:
    known: dict[str, Any] = {
        "context": "",
        "confidence": 0.8,
        "verified": False,
        "tags": ("t",),
        "created": "2026-11-01T10:00:00",
        "modified": "2026-11-01T10:00:00",
        "name": f"knowledge/{kind}/{id_}",
        "path": f"knowledge/{kind}/{id_}.md",
        "sha256": "",
    }
    return Entry(id_, kind, content or f"text of {id_}", **known | more)


def tie(words: str, other: Entry) -> Tie:
    return Tie(words, other.name)


def by_words(entries: Sequence[Entry]) -> Likeness:
    """Likeness where there are no vectors."""
    return likeness_of(entries, [[] for _ in entries], "")
