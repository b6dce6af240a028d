"""A synthetic vault with a fixed seed: the same count and seed give the same bytes.

Notes have a header, two or three sections of Zipf-distributed words and three wikilinks, in twenty
folders. The words are made of syllables, so that nothing in them helps or hinders a stemmer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

TAGS = ["project", "idea", "decision", "todo", "meeting", "status/open", "status/done", "person"]


def vocabulary(seed: int, count: int = 20_000) -> list[str]:
    """Return invented words, most frequent first."""
    rng = random.Random(seed)
    vowels = ("a", "e", "i", "o", "u", "ar", "en", "il", "om")
    syllables = [start + end for start in "bdfgklmnprstvz" for end in vowels]
    return ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(count)]


def make_vault(folder: Path, count: int, seed: int = 11, folders: int = 20) -> None:
    """Write `count` notes of 150 to 300 words."""
    rng = random.Random(seed)
    words = vocabulary(seed)
    names = [f"area-{number % folders:02d}/note-{number:06d}" for number in range(count)]

    for number, name in enumerate(names):
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_make_note(number, names, words, rng).encode())


def _make_note(number: int, names: Sequence[str], words: Sequence[str], rng: random.Random) -> str:
    """Return the text of a note whose sections link to random notes."""
    # The order of the draws decides the bytes of all notes that follow.
    title = " ".join(rng.choices(words[:2000], k=4)).capitalize()
    header = note_header(number, title, rng.sample(TAGS, 2))

    section_count = rng.randint(2, 3)
    sections = []
    for section in range(section_count):
        size = rng.randint(150, 300) // section_count
        text = [_draw_word(words, rng) for _ in range(size)]
        target = names[rng.randrange(len(names))].rsplit("/", 1)[1]
        text[size // 2] = f"[[{target}]]"
        heading = _draw_word(words, rng).capitalize()
        sections.append(f"\n## {heading} {section}\n\n{' '.join(text)}.\n")
    return header + "".join(sections)


def note_header(number: int, title: str, tags: Sequence[str]) -> str:
    """Return the properties and the heading of a note. Its date follows from its number."""
    tag_lines = "".join(f"  - {tag}\n" for tag in tags)
    day = f"2026-{1 + number % 12:02d}-{1 + number % 28:02d}T08:00:00"
    return f"---\ntitle: {title}\ntags:\n{tag_lines}created: {day}\n---\n\n# {title}\n"


def _draw_word(words: Sequence[str], rng: random.Random) -> str:
    """Return a word; those at the beginning are the most probable, as Zipf's law has it."""
    return words[int(len(words) ** rng.random()) - 1]


def make_queries(count: int, seed: int = 11) -> list[str]:
    """Return questions of four to eight words, drawn as the words of the notes are."""
    rng = random.Random(seed + 1)
    words = vocabulary(seed)
    queries = []
    for _ in range(count):
        size = rng.randint(4, 8)
        queries.append(" ".join(_draw_word(words, rng) for _ in range(size)))
    return queries


def notes_of(vault: Path) -> list[Path]:
    """Return the files of the notes of any vault, sorted."""
    return sorted(file for file in vault.rglob("*.md") if ".simplemem" not in file.parts)


def draw_phrases(files: Sequence[Path], count: int, rng: random.Random) -> list[str]:
    """Return six consecutive words of a random note, so many times; fewer words of short notes."""
    phrases = []
    for file in rng.choices(files, k=count):
        words = file.read_text(encoding="utf-8").rsplit("---", 1)[-1].split()
        start = rng.randrange(max(1, len(words) - 6))
        phrases.append(" ".join(words[start : start + 6]))
    return phrases
