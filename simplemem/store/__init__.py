"""One vault, as every interface uses it: what the packages above the store may import from it."""

from simplemem.index.api import Changes, LinkedNote, LinkGraph, Mark, NoteRow, Progress, SyncReport
from simplemem.search.judgement import falling_scores
from simplemem.search.packing import Piece
from simplemem.store.batch import BatchResult, Draft
from simplemem.store.edits import now
from simplemem.store.extension import ExtensionAPI, Read
from simplemem.store.proposing import PROPOSAL_FOLDER
from simplemem.store.similarity import Answers, Likeness, Pinned, as_words
from simplemem.store.store import EnhancedStore, open_store
from simplemem.vault.folder.disk import ConcurrentWrite, change_file, write_file
from simplemem.vault.values import Version

__all__ = [
    "PROPOSAL_FOLDER",
    "Answers",
    "BatchResult",
    "Changes",
    "ConcurrentWrite",
    "Draft",
    "EnhancedStore",
    "ExtensionAPI",
    "Likeness",
    "LinkGraph",
    "LinkedNote",
    "Mark",
    "NoteRow",
    "Piece",
    "Pinned",
    "Progress",
    "Read",
    "SyncReport",
    "Version",
    "as_words",
    "change_file",
    "falling_scores",
    "now",
    "open_store",
    "write_file",
]
