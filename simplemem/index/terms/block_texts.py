"""Count text that several notes have in common: footers, badges, headings and lines of templates.

A segment has a key for the text of each of its blocks (`text_key` in note/passages.py). Blocks with the
same key look the same to a reader. The key 0 belongs to blocks without words, which are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simplemem.index.door import NoteId, PlaceId
from simplemem.index.places import BLOCK, SHIFT
from simplemem.index.terms.query_terms import Part
from simplemem.index.terms.segment import Integers, expand, find_sorted

_NUMBER_MASK = BLOCK - 1


def count_notes_with_same_text(
    parts: Sequence[Part], blocks: Sequence[PlaceId]
) -> dict[PlaceId, int]:
    """Return for each block in how many notes its text stands. Blocks without words are left out."""
    place_ids = np.asarray(blocks, np.int64)
    note_ids = place_ids >> SHIFT
    numbers = place_ids & _NUMBER_MASK
    keys = np.zeros(len(place_ids), np.uint64)
    for part in parts:
        notes, is_here = _find_notes(part, note_ids)
        is_here &= numbers < part.segment.documents.block_counts[notes]
        indexes = part.segment.documents.first_blocks[notes] + numbers
        keys[is_here] = part.segment.documents.text_keys[indexes[is_here]]

    counts = _count_notes(parts, keys)
    found = keys != 0
    return dict(zip(place_ids[found].tolist(), counts[found].tolist(), strict=True))


def find_repeated_blocks(
    parts: Sequence[Part], note_ids: Sequence[NoteId], min_notes: int
) -> list[PlaceId]:
    """Return the blocks of some notes whose text `min_notes` or more notes have."""
    wanted = np.asarray(note_ids, np.int64)
    place_ids = []
    keys = []
    for part in parts:
        documents = part.segment.documents
        notes, is_here = _find_notes(part, wanted)
        notes = notes[is_here]
        block_counts = documents.block_counts[notes].astype(np.int64)
        indexes = expand(documents.first_blocks[notes], block_counts)
        numbers = indexes - np.repeat(documents.first_blocks[notes], block_counts)
        ids = np.repeat(documents.note_ids[notes], block_counts)
        place_ids.append((ids << SHIFT) | BLOCK | numbers)
        keys.append(documents.text_keys[indexes])
    if not place_ids:
        return []

    every_key = np.concatenate(keys)
    is_repeated = (every_key != 0) & (_count_notes(parts, every_key) >= min_notes)
    repeated: list[PlaceId] = np.concatenate(place_ids)[is_repeated].tolist()
    return repeated


def _find_notes(part: Part, note_ids: Integers) -> tuple[Integers, Integers]:
    """Return the index of each note in a segment, and whether it is there and still indexed."""
    documents = part.segment.documents
    indexes, is_here = find_sorted(documents.sorted_note_ids, note_ids)
    notes = documents.note_order[indexes]
    if part.is_alive is not None:
        is_here &= part.is_alive[notes]
    return notes, is_here


def _count_notes(parts: Sequence[Part], keys: Integers) -> Integers:
    """Return for each key how many notes have a block with it."""
    counts = np.zeros(len(keys), np.int64)
    for part in parts:
        documents = part.segment.documents
        counts += _look_up(*documents.notes_by_text, keys)
        if part.is_alive is not None:
            counts -= _look_up(*documents.count_texts(~part.is_alive), keys)
    return counts


def _look_up(sorted_keys: Integers, counts: Integers, keys: Integers) -> Integers:
    if not len(sorted_keys):
        return np.zeros(len(keys), np.int64)
    indexes, is_there = find_sorted(sorted_keys, keys)
    return np.where(is_there, counts[indexes], 0)
