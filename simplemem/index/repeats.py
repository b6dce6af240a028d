"""Give text that stands in many notes less weight, and find it where an excerpt can leave it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from simplemem.index.door import BLOCKS_COUNTED, Match, NoteId, PlaceId

MIN_NOTES_OF_REPEATED_TEXT = (
    5  # an excerpt leaves text of so many notes out if it can show other text
)
_MAX_COUNTED_NOTES = 100  # a weight does not get smaller with more notes

# A text of up to a tenth of all notes, within these bounds, keeps its full weight. With 3 in a vault of
# 173 notes, texts that a few related notes share weighed too little (MRR of first sentences 0.514 for
# 0.538; with 10 it is 0.533).
_MIN_UNWEIGHTED_NOTES = 3
_MAX_UNWEIGHTED_NOTES = 10


def blocks_to_weigh(blocks: Iterable[Match]) -> list[PlaceId]:
    """Return the `BLOCKS_COUNTED` best blocks of each note. `blocks` are the best first."""
    blocks_of_note = Counter[NoteId]()
    block_ids = list[PlaceId]()
    for match in blocks:
        blocks_of_note[match.note] += 1
        if blocks_of_note[match.note] <= BLOCKS_COUNTED:
            block_ids.append(match.place)
    return block_ids


def weights_of(notes_with_text: Mapping[PlaceId, int], note_count: int) -> dict[PlaceId, float]:
    """Return a weight between 0 and 1 for each block whose text stands in many notes; others have none.

    `notes_with_text` says for each block in how many notes its text stands, and `note_count` is the
    number of notes in the index.
    """
    unweighted_notes = max(_MIN_UNWEIGHTED_NOTES, min(note_count // 10, _MAX_UNWEIGHTED_NOTES))
    return {
        block: unweighted_notes / min(notes, _MAX_COUNTED_NOTES)
        for block, notes in notes_with_text.items()
        if notes > unweighted_notes
    }
