"""What it would take to give every note its vectors, known from the index alone: how many texts, about how many tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import apsw

from simplemem.index.generations import generation_of

_BYTES_PER_TOKEN = 4  # of English prose; a Chinese character, of three bytes, comes out at less than one token
_TOKENS_OF_A_HEADING = 8  # every text begins with where it stands
_ASKED_AT_ONCE = 1000


MadeBefore = Callable[[Sequence[bytes]], Collection[bytes]]
"""Of which texts, by their hashes, there are vectors elsewhere."""


def nothing_made_before(_: Sequence[bytes]) -> Collection[bytes]:
    return ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an embedder has still to be given: texts of so many notes, each once, and about so many tokens. `kept` texts
    need not be, because their vectors were made before. To a `remote` one they are sent over the network."""

    embedder: str
    remote: bool
    notes: int
    texts: int
    tokens: int
    kept: int


def estimate(
    db: apsw.Connection,
    embedder: str,
    *,
    remote: bool,
    anew: bool = False,
    known: MadeBefore = nothing_made_before,
) -> Estimate:
    """What waits for this embedder. `anew` counts as if no note had its vectors yet; `known` says of which texts, by
    their hashes, there are vectors elsewhere."""
    found = None if anew else generation_of(db, embedder)
    waits = "n.hidden IS NULL AND NOT (:remote AND n.private IS NOT NULL)"
    if found is not None:
        there = f"SELECT 1 FROM {found.shelf.table} v WHERE v.id = p.id"
        waits = f"n.{found.shelf.flag} = 0 AND {waits} AND NOT EXISTS ({there})"
    of_one_kind = f"""SELECT p.hash, n.id, p.stop - p.start, n.size * 1.0 / max(p.stop, 1)
                      FROM notes n CROSS JOIN {{}} p ON p.id >= (n.id << 20) AND p.id < ((n.id + 1) << 20)
                      WHERE p.hash IS NOT NULL AND {waits}"""
    sql = " UNION ALL ".join(of_one_kind.format(table) for table in ("passages", "blocks"))
    characters: dict[bytes, tuple[int, int]] = {}
    width: dict[int, float] = {}  # bytes a character, by note: its last text ends where its file does
    for hash_, note, size, bytes_per_character in db.execute(sql, {"remote": remote}):
        characters[hash_] = (note, size)
        width[note] = min(width.get(note, 4.0), bytes_per_character)
    hashes = list(characters)
    for first in range(0, len(hashes), _ASKED_AT_ONCE):
        for hash_ in known(hashes[first : first + _ASKED_AT_ONCE]):
            characters.pop(hash_, None)
    tokens = sum(size * width[note] / _BYTES_PER_TOKEN + _TOKENS_OF_A_HEADING for note, size in characters.values())
    notes = len({note for note, _ in characters.values()})
    return Estimate(embedder, remote, notes, len(characters), round(tokens), len(hashes) - len(characters))
