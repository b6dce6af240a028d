"""Vectors for the notes that have none yet: after the text is searchable, resumable at any note. A private note is read
again right before its text is sent to another machine, whatever the index says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from simplemem.errors import SimplememError, Unavailable
from simplemem.index import vectors
from simplemem.index.database import WAL_LIMIT_AMID_MUCH, Database
from simplemem.index.notes import stat_of, vector_space, waiting
from simplemem.index.sync import Progress
from simplemem.index.text import Waiting, understood, units
from simplemem.note.note import private_reason, read_note
from simplemem.note.passages import text_hash
from simplemem.note.words import without_stop_words
from simplemem.services.client import Refused
from simplemem.services.embed import Embedder
from simplemem.vault.vault import Vault

_NOTES_AT_ONCE = 500


def adopt(database: Database, embedder: Embedder) -> None:
    """Make the index one of this embedder's vectors. Another's are let go, or its own of when it was elsewhere."""
    wanted = embedder.name, embedder.remote
    with database.reading() as db:
        found = vector_space(db)
    if found is None or (found.embedder, found.remote) != wanted:
        with database.writing() as db:
            db.execute("DELETE FROM vectors; DELETE FROM vector_space").fetchall()
            db.execute("INSERT INTO vector_space VALUES (?, 0, ?)", wanted).fetchall()
            wants_none = "hidden IS NOT NULL OR (:remote AND private IS NOT NULL)"
            sql = f"UPDATE notes SET refused = NULL, embedded = ({wants_none})"
            db.execute(sql, {"remote": embedder.remote}).fetchall()


class _ToEmbed(NamedTuple):
    """What of a note is to be embedded, and the hash the note had. Without a hash it could not be read just now."""

    id: int
    sha256: str
    rows: list[tuple[int, str]]


@dataclass(slots=True)
class Filling:
    """Embeds what is missing. `ready` holds texts that need no reading. What was made before a failure is kept."""

    vault: Vault
    database: Database
    embedder: Embedder
    progress: Progress | None = None
    stopped: Callable[[], bool] = lambda: False
    ready: Waiting | None = None
    private: Sequence[str] = ()
    _took_any: bool = False  # whether the embedder has taken a text yet

    def run(self) -> int:
        """Returns how many notes got their vectors. Ends early when another process begins with another embedder."""
        adopt(self.database, self.embedder)
        passed: set[int] = set()
        done, total = 0, -1
        while not self.stopped():
            with self.database.reading() as db:
                if (space := vector_space(db)) is None or space.embedder != self.embedder.name:
                    break
                total = waiting(db) if total < 0 else total
                sql = "SELECT id, path FROM notes WHERE embedded = 0 ORDER BY id LIMIT ?"
                there: Any = db.execute(sql, (_NOTES_AT_ONCE + len(passed) - done,)).fetchall()
            batch: list[_ToEmbed] = []
            for note_id, path in there:  # as many notes at once as the embedder takes texts, one at least
                if note_id not in passed and sum(len(note.rows) for note in batch) < self.embedder.batch:
                    batch.append(self._texts(note_id, path))
            if not batch or (stored := self._embed(batch)) is None:
                break
            done += stored
            passed |= {note.id for note in batch}
            self.database.checkpoint(WAL_LIMIT_AMID_MUCH)
            if self.progress is not None:
                self.progress("vectors", min(len(passed), total), max(total, len(passed)))
        return done

    def _texts(self, note_id: int, path: str) -> _ToEmbed:
        with self.database.reading() as db:
            wanted = vectors.hashes_of(db, note_id, missing=True)
        kept = self.ready.take(note_id) if self.ready is not None and not self.embedder.remote else None
        if kept is not None and {place: text_hash(words) for place, words in kept[1]} == wanted:
            return _ToEmbed(note_id, *kept)  # else another process has changed it since
        try:
            file = self.vault.read(path)
        except (SimplememError, OSError):
            return _ToEmbed(note_id, "", [])
        note = read_note(file.data)
        if self.embedder.remote and private_reason(path, note, self.private) is not None:
            return _ToEmbed(note_id, file.sha256, [])
        every = units(note_id, understood(path, note, stat_of(file.entry)))
        rows = [(place, words) for place, _, words in every if words and wanted.get(place) == text_hash(words)]
        return _ToEmbed(note_id, file.sha256, rows)

    def _embed(self, batch: Sequence[_ToEmbed]) -> int | None:
        """Embed some notes, each text once, and store what still fits. None when another embedder has begun."""
        name = self.embedder.name
        made, refused = self._asked(list(dict.fromkeys(words for note in batch for _, words in note.rows)))
        with self.database.writing() as db:
            if (space := vector_space(db)) is None or space.embedder != name:
                return None
            widths = sorted({len(vector) for vector in made.values()} | ({space.dimension} - {0}))
            if len(widths) > 1:
                raise Unavailable(
                    f"{name} gives vectors of {' and '.join(map(str, widths))} numbers; it is not the model it was",
                    hint="`simplemem index --rebuild` makes all vectors with the model as it is now.",
                )
            if made and not space.dimension:  # the first vector has come
                db.execute("UPDATE vector_space SET dimension = ?", (widths[0],)).fetchall()
            done = 0
            for note in batch:
                why = next((refused[words] for _, words in note.rows if words in refused), "")
                rows = {place: made[words] for place, words in note.rows if words in made}
                if note.sha256:
                    done += vectors.put(db, note.id, note.sha256, rows, why)
            return done

    def _asked(self, texts: list[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """The vectors of texts, and what is said of those refused, found by asking for the halves of a batch."""
        if not texts:
            return {}, {}
        given = texts if self.embedder.reads_sentences else [without_stop_words(words) for words in texts]
        try:
            made = dict(zip(texts, self.embedder.documents(given, stopped=self.stopped), strict=True))
            self._took_any = True
            return made, {}
        except Refused as error:
            if not self._took_any:  # does it refuse this text, or every text?
                self.embedder.documents(["memory"], stopped=self.stopped)
                self._took_any = True
            if len(texts) == 1:
                return {}, {texts[0]: error.message}
        half = len(texts) // 2
        (first, refused), (second, refused_too) = self._asked(texts[:half]), self._asked(texts[half:])
        return first | second, refused | refused_too
