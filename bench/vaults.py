"""A synthetic vault with a fixed seed: the same count and seed give the same bytes.

Notes have a header, two or three sections of Zipf-distributed words and three wikilinks, in twenty folders. The words
are made of syllables, so that nothing in them helps or hinders a stemmer.
"""

from __future__ import annotations

import random
from pathlib import Path

_TAGS = ["project", "idea", "decision", "todo", "meeting", "status/open", "status/done", "person"]


def vocabulary(seed: int, count: int = 20_000) -> list[str]:
    """Made-up words, most frequent first."""
    chance = random.Random(seed)
    syllables = [
        start + end
        for start in "bdfgklmnprstvz"
        for end in ("a", "e", "i", "o", "u", "ar", "en", "il", "om")
    ]
    return ["".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(count)]


def make_vault(folder: Path, count: int, seed: int = 11, folders: int = 20) -> None:
    """Write `count` notes of 150 to 300 words."""
    chance = random.Random(seed)
    words = vocabulary(seed)

    def word() -> str:
        return words[int(len(words) ** chance.random()) - 1]

    names = [f"area-{k % folders:02d}/note-{k:06d}" for k in range(count)]
    for k, name in enumerate(names):
        title = " ".join(chance.choices(words[:2000], k=4)).capitalize()
        tags = "".join(f"  - {tag}\n" for tag in chance.sample(_TAGS, 2))
        day = f"2026-{1 + k % 12:02d}-{1 + k % 28:02d}T08:00:00"
        parts = [f"---\ntitle: {title}\ntags:\n{tags}created: {day}\n---\n\n# {title}\n"]
        sections = chance.randint(2, 3)
        for section in range(sections):
            text = [word() for _ in range(chance.randint(150, 300) // sections)]
            text[len(text) // 2] = f"[[{names[chance.randrange(count)].rsplit('/', 1)[1]}]]"
            parts.append(f"\n## {word().capitalize()} {section}\n\n{' '.join(text)}.\n")
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(parts).encode())


def make_queries(count: int, seed: int = 11) -> list[str]:
    """Questions of four to eight words, drawn as the notes' words are."""
    chance = random.Random(seed + 1)
    words = vocabulary(seed)
    return [
        " ".join(words[int(len(words) ** chance.random()) - 1] for _ in range(chance.randint(4, 8)))
        for _ in range(count)
    ]
