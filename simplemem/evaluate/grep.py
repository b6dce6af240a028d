"""What `grep -ic` would have found: the yardstick that anybody has at hand. Pure.

Notes in the order of how many of their lines hold a word of the question, in any case of letters.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate

from simplemem.note.words import content_words, words_of


class Grep:
    """The notes of a vault, ready to be looked through."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._names = list(texts)
        bodies = [text.lower() + "\n" for text in texts.values()]
        self._starts = list(accumulate((len(body) for body in bodies), initial=0))[:-1]
        self._all = "".join(bodies)

    def lines(self, question: str, changed: Mapping[str, str]) -> dict[str, int]:
        """How many lines of each note hold a word of the question; `changed` notes have these texts instead."""
        words = [word.lower() for word in content_words(words_of(question))]
        found: dict[str, int] = {}
        for start in _lines_with(self._all, words):
            name = self._names[bisect_right(self._starts, start) - 1]
            if name not in changed:
                found[name] = found.get(name, 0) + 1
        for name, text in changed.items():
            if count := len(_lines_with(text.lower(), words)):
                found[name] = count
        return found

    def ranked(self, question: str, changed: Mapping[str, str], limit: int) -> list[str]:
        """The notes with the most such lines; of equal ones the first by name."""
        counted = self.lines(question, changed)
        return sorted(counted, key=lambda name: (-counted[name], name))[:limit]

    def printed(self, question: str, names: Iterable[str], texts: Mapping[str, str]) -> str:
        """The lines that grep prints of these notes."""
        words = [word.lower() for word in content_words(words_of(question))]
        out = []
        for name in names:
            text = texts[name]
            small = text.lower()
            for start in sorted(_lines_with(small, words)):
                end = small.find("\n", start)
                out.append(f"{name}.md:{small[start : end if end >= 0 else len(small)]}")
        return "\n".join(out)


def _lines_with(text: str, words: Iterable[str]) -> set[int]:
    """Where the lines begin that hold one of the words."""
    found: set[int] = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            found.add(text.rfind("\n", 0, at) + 1)
            end = text.find("\n", at)
            at = text.find(word, end) if end >= 0 else -1
    return found
