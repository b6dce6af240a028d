"""A vault of many passages with a fixed seed, and questions whose answers are known: what bench/scale.py measures with.

A note is about one of many topics: five sections of two or three paragraphs, a passage each. A third of its words are
the sentence's own small words, a third are common to all notes and fall off as Zipf says, a third are its topic's.
Words are made of syllables; every note has a few that stand nowhere else but in its topic.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path

from simplemem.note.words import STOP_WORDS

PASSAGES_A_NOTE = 5
_NOTES_A_TOPIC = 40
_WORDS_A_TOPIC = 60
_TAGS = ["project", "idea", "decision", "todo", "meeting", "status/open", "status/done", "person"]


@dataclass(frozen=True)
class Corpus:
    """So many notes; each can be made by itself, in any order."""

    notes: int
    seed: int

    @cached_property
    def words(self) -> list[str]:
        """Made-up words, most frequent first."""
        chance = random.Random(self.seed)
        starts = [
            a + b
            for a in ("", *"bdfgklmnprstvz", "st", "tr", "kl")
            for b in ("a", "e", "i", "o", "u")
        ]
        ends = ("", "n", "r", "l", "s", "m", "rt", "nd")
        made = (
            "".join(chance.choices(starts, k=chance.randint(1, 3))) + chance.choice(ends)
            for _ in range(400_000)
        )
        return list(
            dict.fromkeys(word for word in made if len(word) > 3 and word not in STOP_WORDS)
        )[:60_000]

    @cached_property
    def _falling_off(self) -> list[float]:
        return list(accumulate(1 / (k + 20) for k in range(len(self.words))))

    @cached_property
    def _small_words(self) -> list[str]:
        return sorted(STOP_WORDS)

    def _common(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self.words, cum_weights=self._falling_off, k=count)

    @cached_property
    def _rarer_words(self) -> list[str]:
        return self.words[500:]

    @lru_cache(maxsize=10_000)  # noqa: B019  (one corpus a run)
    def _topic(self, number: int) -> list[str]:
        return random.Random(f"{self.seed}/topic/{number}").sample(
            self._rarer_words, _WORDS_A_TOPIC
        )

    def path(self, number: int) -> str:
        return f"area-{number % 20:02d}/{number // 20 % 50:02d}/note-{number:07d}.md"

    def note(self, number: int) -> tuple[str, list[list[str]]]:
        """A note's text, and the words of its sections."""
        chance = random.Random(f"{self.seed}/note/{number}")
        topic = self._topic(number % max(1, self.notes // _NOTES_A_TOPIC))
        title = " ".join([*chance.sample(topic, 2), *self._common(chance, 2)]).capitalize()
        tags = "".join(f"  - {tag}\n" for tag in chance.sample(_TAGS, 2))
        day = f"2026-{1 + number % 12:02d}-{1 + number % 28:02d}T08:00:00"
        parts = [f"---\ntitle: {title}\ntags:\n{tags}created: {day}\n---\n\n# {title}\n"]
        sections = []
        for _ in range(PASSAGES_A_NOTE):
            size = chance.randint(66, 84)
            words = [
                *chance.choices(self._small_words, k=size // 3),
                *self._common(chance, size // 3),
            ]
            words += chance.choices(topic, k=size - len(words))
            chance.shuffle(words)
            sections.append(words)
            cuts = (
                [0, size // 2, size]
                if chance.random() < 0.5
                else [0, size // 3, 2 * size // 3, size]
            )
            paragraphs = [words[a:b] for a, b in pairwise(cuts)]
            paragraphs[-1] = [*paragraphs[-1], f"[[note-{chance.randrange(self.notes):07d}]]"]
            text = "\n\n".join(" ".join(paragraph).capitalize() + "." for paragraph in paragraphs)
            parts.append(
                f"\n## {words[bisect([0.3, 0.6], chance.random())].capitalize()}\n\n{text}\n"
            )
        return "".join(parts), sections

    def write(self, folder: Path) -> Iterator[int]:
        """Write the notes that are not there yet, in order; yields how many are there."""
        for number in range(self.notes):
            path = folder / self.path(number)
            if number < 1000:
                path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_bytes(self.note(number)[0].encode())
            yield number + 1

    def questions(self, count: int) -> list[tuple[str, str]]:
        """Questions of four to eight words that stand near each other in a section, and the path of the note."""
        chance = random.Random(f"{self.seed}/questions")
        asked = []
        for _ in range(count):
            number = chance.randrange(self.notes)
            words = chance.choice(self.note(number)[1])
            size = chance.randint(4, 8)
            first = chance.randrange(max(1, len(words) - 2 * size))
            asked.append(
                (
                    " ".join(
                        sorted(
                            chance.sample(words[first : first + 2 * size], size), key=words.index
                        )
                    ),
                    self.path(number),
                )
            )
        return asked

    def frequent_questions(self, count: int) -> list[str]:
        """Questions of four to eight of the hundred words that most notes hold: the worst there is for words."""
        chance = random.Random(f"{self.seed}/frequent")
        return [
            " ".join(chance.sample(self.words[:100], chance.randint(4, 8))) for _ in range(count)
        ]
