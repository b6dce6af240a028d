"""One vault, for every interface: what stands above knows this, and nothing behind it."""

from simplemem.index.door import Mark, Progress, SyncReport
from simplemem.search.judgement import falling_scores
from simplemem.search.packing import Piece
from simplemem.store.bench import Answers, Bench, Carried, Draft, Likeness, Read, as_words
from simplemem.store.edits import now
from simplemem.store.store import EnhancedStore, open_store
from simplemem.vault.folder.disk import ConcurrentWrite, change_file, write_file

__all__ = [
    "Answers",
    "Bench",
    "Carried",
    "ConcurrentWrite",
    "Draft",
    "EnhancedStore",
    "Likeness",
    "Mark",
    "Piece",
    "Progress",
    "Read",
    "SyncReport",
    "as_words",
    "change_file",
    "falling_scores",
    "now",
    "open_store",
    "write_file",
]  # fmt: skip
