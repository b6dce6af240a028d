"""A vault of many passages with a fixed seed, and questions with answers, for bench/scale.py.

A note is about one of many topics. It has five sections of two or three paragraphs, and each
section becomes a passage. Of the words a third are stop words, a third are common to all notes with
frequencies that follow Zipf's law, and a third belong to the topic. The words are made of
syllables.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

from bench.vaults import TAGS, note_header
from simplemem.note.words import STOP_WORDS

PASSAGES_A_NOTE: Final = 5
_NOTES_A_TOPIC: Final = 40
_WORDS_A_TOPIC: Final = 60
_LONGEST_VOCABULARY: Final = 60_000


@dataclass(frozen=True)
class Corpus:
    """A number of notes. Each can be made by itself, in any order."""

    notes: int
    seed: int

    @cached_property
    def words(self) -> list[str]:
        """The invented words, most frequent first."""
        rng = random.Random(self.seed)
        consonants = ("", *"bdfgklmnprstvz", "st", "tr", "kl")
        syllables = [consonant + vowel for consonant in consonants for vowel in "aeiou"]
        endings = ("", "n", "r", "l", "s", "m", "rt", "nd")

        words: dict[str, None] = {}  # in the order of their making
        for _ in range(400_000):
            stem = "".join(rng.choices(syllables, k=rng.randint(1, 3)))
            word = stem + rng.choice(endings)
            if len(word) > 3 and word not in STOP_WORDS:
                words[word] = None
        return list(words)[:_LONGEST_VOCABULARY]

    @cached_property
    def _cumulative_frequencies(self) -> list[float]:
        """Return weights by Zipf's law: 1 / n at position n, with less difference at the top."""
        return list(accumulate(1 / (position + 20) for position in range(len(self.words))))

    @cached_property
    def _stop_words(self) -> list[str]:
        return sorted(STOP_WORDS)

    @cached_property
    def _rarer_words(self) -> list[str]:
        return self.words[500:]

    def _common_words(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(self.words, cum_weights=self._cumulative_frequencies, k=count)

    @lru_cache(maxsize=10_000)  # noqa: B019  (a process has one corpus)
    def _topic_words(self, number: int) -> list[str]:
        rng = random.Random(f"{self.seed}/topic/{number}")
        return rng.sample(self._rarer_words, _WORDS_A_TOPIC)

    def path(self, number: int) -> str:
        """Return the path of a note below the vault."""
        return f"area-{number % 20:02d}/{number // 20 % 50:02d}/note-{number:07d}.md"

    def note(self, number: int) -> tuple[str, list[list[str]]]:
        """Return the text of a note, and the words of its sections."""
        rng = random.Random(f"{self.seed}/note/{number}")
        topic_count = max(1, self.notes // _NOTES_A_TOPIC)
        topic_words = self._topic_words(number % topic_count)

        # The order of the draws decides the bytes.
        title_words = [*rng.sample(topic_words, 2), *self._common_words(rng, 2)]
        title = " ".join(title_words).capitalize()
        parts = [note_header(number, title, rng.sample(TAGS, 2))]
        sections = []
        for _ in range(PASSAGES_A_NOTE):
            words = self._section_words(topic_words, rng)
            sections.append(words)
            parts.append(self._section_text(words, rng))
        return "".join(parts), sections

    def _section_words(self, topic_words: list[str], rng: random.Random) -> list[str]:
        """Return the 66 to 84 words of a section in random order."""
        size = rng.randint(66, 84)
        words = rng.choices(self._stop_words, k=size // 3)
        words += self._common_words(rng, size // 3)
        words += rng.choices(topic_words, k=size - len(words))
        rng.shuffle(words)
        return words

    def _section_text(self, words: list[str], rng: random.Random) -> str:
        """Return a section with a heading, two or three paragraphs, and a link in the last one."""
        size = len(words)
        if rng.random() < 0.5:
            borders = [0, size // 2, size]
        else:
            borders = [0, size // 3, 2 * size // 3, size]
        paragraphs = [words[start:end] for start, end in pairwise(borders)]
        paragraphs[-1] = [*paragraphs[-1], f"[[note-{rng.randrange(self.notes):07d}]]"]

        text = "\n\n".join(" ".join(paragraph).capitalize() + "." for paragraph in paragraphs)
        heading = words[bisect([0.3, 0.6], rng.random())].capitalize()  # one of the first three
        return f"\n## {heading}\n\n{text}\n"

    def write(self, folder: Path) -> Iterator[int]:
        """Write the missing notes in order. Yield after each note how many exist."""
        for number in range(self.notes):
            path = folder / self.path(number)
            if number < 1000:  # the first 1,000 notes are in all folders there are
                path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                text, _ = self.note(number)
                path.write_bytes(text.encode())
            yield number + 1

    def questions(self, count: int) -> list[tuple[str, str]]:
        """Return questions of four to eight words of a section, each with the note's path."""
        rng = random.Random(f"{self.seed}/questions")
        questions = []
        for _ in range(count):
            number = rng.randrange(self.notes)
            _, sections = self.note(number)
            words = rng.choice(sections)

            size = rng.randint(4, 8)
            start = rng.randrange(max(1, len(words) - 2 * size))
            neighbours = words[start : start + 2 * size]
            drawn = sorted(rng.sample(neighbours, size), key=words.index)
            questions.append((" ".join(drawn), self.path(number)))
        return questions

    def frequent_questions(self, count: int) -> list[str]:
        """Return questions of four to eight of the hundred commonest words, the slowest ones."""
        rng = random.Random(f"{self.seed}/frequent")
        most_frequent = self.words[:100]
        return [" ".join(rng.sample(most_frequent, rng.randint(4, 8))) for _ in range(count)]
