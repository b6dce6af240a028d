"""The nine tools of the profile, in the order of the tool list.

A note without a `permalink` has the one that basic-memory makes of its path; no tool writes it.
"""

from __future__ import annotations

from typing import Final

from simplemem.profiles.basic_memory.context import build_context
from simplemem.profiles.basic_memory.edits import edit_note, write_note
from simplemem.profiles.basic_memory.listing import list_directory, recent_activity
from simplemem.profiles.basic_memory.moves import delete_note, move_note
from simplemem.profiles.basic_memory.reading import read_note
from simplemem.profiles.basic_memory.search import search_notes

TOOLS: Final = (
    write_note,
    read_note,
    edit_note,
    search_notes,
    build_context,
    recent_activity,
    list_directory,
    delete_note,
    move_note,
)
