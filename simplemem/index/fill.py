"""Vectors for the notes that have none yet: after the text is searchable, resumable at any note."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simplemem.embed import Embedder
from simplemem.errors import SimplememError
from simplemem.index import text, vectors
from simplemem.index.database import Database
from simplemem.index.facts import embedded_text, facts_of
from simplemem.index.sync import Progress
from simplemem.note.note import read_note
from simplemem.note.words import without_stop_words
from simplemem.vault.vault import Vault

_META = "embedder"
_NOTES_AT_ONCE = 500


def adopt(database: Database, embedder: Embedder | None) -> None:
    """Make the index hold vectors of this embedder only."""
    wanted = f"{embedder.name}/{embedder.dimension}" if embedder is not None else "none"
    if database.meta(_META) == wanted:
        return
    with database.writing() as db:
        vectors.forget_all(db)
        database.set_meta(_META, wanted)


def fill(
    vault: Vault,
    database: Database,
    embedder: Embedder,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Embed what is missing, newest rows last, and return how many notes got their vectors."""
    adopt(database, embedder)
    with database.reading() as db:
        total = vectors.count_missing(db)
    done, tried = 0, 0
    passed: set[int] = set()
    while not stopped():
        with database.reading() as db:
            waiting = [
                row for row in vectors.missing(db, _NOTES_AT_ONCE + len(passed)) if row[0] not in passed
            ]
        if not waiting:
            break
        for note_id, stored in _embedded(vault, database, embedder, waiting[:_NOTES_AT_ONCE]):
            passed.add(note_id)
            done += stored
        tried = len(passed)
        if progress is not None:
            progress("vectors", min(tried, total), max(total, tried))
    return done


def _embedded(
    vault: Vault, database: Database, embedder: Embedder, waiting: Sequence[tuple[int, str]]
) -> list[tuple[int, bool]]:
    """Embed some notes in one batch. A note that changed meanwhile is left for later."""
    texts: list[str] = []
    wanted: list[tuple[int, str, list[int]]] = []
    results: list[tuple[int, bool]] = []
    for note_id, path in waiting:
        try:
            file = vault.read(path)
        except (SimplememError, OSError):
            results.append((note_id, False))
            continue
        facts = facts_of(path, read_note(file.data), file.entry.mtime_ns)
        with database.reading() as db:
            there = vectors.places_with_vectors(db, note_id)
        missing = [(id_, unit) for id_, unit in text.places(note_id, facts) if id_ not in there]
        texts += [without_stop_words(embedded_text(facts.title, unit)) for _, unit in missing]
        wanted.append((note_id, file.sha256, [id_ for id_, _ in missing]))
    made = iter(_embed_once_each(embedder, texts))
    with database.writing() as db:
        for note_id, sha256, ids in wanted:
            stored = vectors.put(db, note_id, sha256, {id_: next(made) for id_ in ids})
            results.append((note_id, stored))
    return results


def _embed_once_each(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """A short section is both a passage and a block; its text is embedded once."""
    distinct = list(dict.fromkeys(texts))
    found = dict(zip(distinct, embedder.documents(distinct), strict=True)) if distinct else {}
    return [found[text_] for text_ in texts]
