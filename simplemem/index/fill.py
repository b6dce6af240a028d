"""Vectors for the notes that have none yet: after the text is searchable, resumable at any note."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simplemem.embed import Embedder
from simplemem.errors import SimplememError
from simplemem.index import text, vectors
from simplemem.index.database import Database
from simplemem.index.facts import facts_of, hash_of
from simplemem.index.sync import Progress
from simplemem.index.waiting import Waiting
from simplemem.note.note import read_note
from simplemem.note.words import without_stop_words
from simplemem.vault.vault import Vault

_META = "embedder"
_NOTES_AT_ONCE = 500


def adopt(database: Database, embedder: Embedder | None) -> None:
    """Make the index hold vectors of this embedder only."""
    if holds(database, embedder):
        return
    with database.writing() as db:
        vectors.forget_all(db)
        database.set_meta(_META, _mark(embedder))


def holds(database: Database, embedder: Embedder | None) -> bool:
    """Whether the vectors in the index are this embedder's."""
    return database.meta(_META) == _mark(embedder)


def _mark(embedder: Embedder | None) -> str:
    return f"{embedder.name}/{embedder.dimension}" if embedder is not None else "none"


def fill(
    vault: Vault,
    database: Database,
    embedder: Embedder,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
    ready: Waiting | None = None,
) -> int:
    """Embed what is missing and return how many notes got their vectors. `ready` holds texts that need no reading."""
    adopt(database, embedder)
    with database.reading() as db:
        total = vectors.count_missing(db)
    done = 0
    passed: set[int] = set()
    while not stopped():
        with database.reading() as db:
            waiting = [row for row in vectors.missing(db, _NOTES_AT_ONCE + len(passed)) if row[0] not in passed]
        if not waiting:
            break
        texts = [_texts(vault, database, note_id, path, ready) for note_id, path in waiting[:_NOTES_AT_ONCE]]
        passed |= {text.note for text in texts}
        done += _embed(database, embedder, [text for text in texts if text.sha256])
        database.checkpoint(amid_much=True)
        if progress is not None:
            progress("vectors", min(len(passed), total), max(total, len(passed)))
    database.checkpoint()
    return done


@dataclass(frozen=True, slots=True)
class _Texts:
    """What of a note is to be embedded, and the hash the note had. Without a hash it could not be read just now."""

    note: int
    sha256: str
    rows: list[tuple[int, str]]


def _texts(vault: Vault, database: Database, note_id: int, path: str, ready: Waiting | None) -> _Texts:
    with database.reading() as db:
        wanted = vectors.places_without_vectors(db, note_id)
    kept = ready.take(note_id) if ready is not None else None
    if kept is not None and {id_: hash_of(words) for id_, words in kept[1]} == wanted:
        return _Texts(note_id, *kept)  # else another process has changed it since
    try:
        file = vault.read(path)
    except (SimplememError, OSError):
        return _Texts(note_id, "", [])
    facts = facts_of(path, read_note(file.data), file.entry.mtime_ns)
    rows = [(id_, words) for id_, words in text.to_embed(note_id, facts) if id_ in wanted]
    return _Texts(note_id, file.sha256, rows)


def _embed(database: Database, embedder: Embedder, wanted: Sequence[_Texts]) -> int:
    """Embed some notes in one batch; a text that is both a passage and a block only once. A note that has changed
    meanwhile is left for later."""
    distinct = list(dict.fromkeys(text for texts in wanted for _, text in texts.rows))
    made = dict(zip(distinct, embedder.documents([without_stop_words(text) for text in distinct]), strict=True))
    with database.writing() as db:
        return sum(
            vectors.put(db, texts.note, texts.sha256, {id_: made[text] for id_, text in texts.rows}) for texts in wanted
        )
