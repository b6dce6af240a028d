"""Vectors for the notes that have none yet: after the text is searchable, resumable at any note.

What one embedder makes goes to one generation. Nothing of a private note is given to an embedder that is not on this
machine: the note is read again right before its text is sent, whatever the index says of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from simplemem.errors import SimplememError, Unavailable
from simplemem.index import vectors
from simplemem.index.database import Database
from simplemem.index.facts import facts_of, to_embed
from simplemem.index.reconcile import Progress
from simplemem.index.sync import Waiting
from simplemem.index.vectors import Generation
from simplemem.note.note import private_reason, read_note
from simplemem.note.words import without_stop_words
from simplemem.services.embed import Embedder, hash_of
from simplemem.services.patience import Refused
from simplemem.vault.vault import Vault

_NOTES_AT_ONCE = 500


def adopt(database: Database, embedder: Embedder) -> None:
    """Give this embedder a generation of vectors, in the place of any other that is being made."""
    with database.reading() as db:
        found = vectors.generation_of(db, embedder.name)
    if found is None or found.remote != embedder.remote:
        with database.writing() as db:
            vectors.begin(db, embedder.name, remote=embedder.remote)


def fill(
    vault: Vault,
    database: Database,
    embedder: Embedder,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
    ready: Waiting | None = None,
    *,
    private: Sequence[str] = (),
) -> int:
    """Embed what is missing and return how many notes got their vectors; put the generation in use when it is complete.

    `ready` holds texts that need no reading, `private` are the rules by which notes are kept private. An embedder that
    fails ends it with `Unavailable`; what was made until then is kept.
    """
    adopt(database, embedder)
    return _Fill(vault, database, embedder, stopped, None if embedder.remote else ready, private).run(progress)


@dataclass(frozen=True, slots=True)
class _Texts:
    """What of a note is to be embedded, and the hash the note had. Without a hash it could not be read just now."""

    note: int
    sha256: str
    rows: list[tuple[int, str]]


@dataclass(slots=True)
class _Fill:
    """One pass over the notes that wait."""

    vault: Vault
    database: Database
    embedder: Embedder
    stopped: Callable[[], bool]
    ready: Waiting | None
    private: Sequence[str]
    passed: set[int] = field(default_factory=set)
    unreadable: set[int] = field(default_factory=set)  # just now; one such note does not hold up all others
    took_any: bool = False  # whether the embedder has taken a text yet
    lost: bool = False  # whether another process makes vectors of another embedder now

    def run(self, progress: Progress | None) -> int:
        done, total = 0, -1
        while not self.stopped():
            with self.database.reading() as db:
                found = vectors.generation_of(db, self.embedder.name)
                if found is None:
                    break
                total = vectors.count_missing(db, found.shelf) if total < 0 else total
                waiting = vectors.missing(db, _NOTES_AT_ONCE + len(self.passed), found.shelf)
            waiting = [row for row in waiting if row[0] not in self.passed][:_NOTES_AT_ONCE]
            if not waiting:
                break
            for batch in self._batches(waiting, found):
                done += self._embed(batch)
                if self.lost:
                    return done
                self.passed |= {texts.note for texts in batch}
                self.database.checkpoint(amid_much=True)
                if progress is not None:
                    progress("vectors", min(len(self.passed), total), max(total, len(self.passed)))
                if self.stopped():
                    return done
        with self.database.reading() as db:
            if not vectors.may_be_complete(db, self.embedder.name, self.unreadable):
                return done
        with self.database.writing() as db:
            vectors.switch_if_complete(db, self.embedder.name, self.unreadable)
        self.database.checkpoint()
        return done

    def _batches(self, waiting: Sequence[tuple[int, str]], generation: Generation) -> Iterator[list[_Texts]]:
        """As many notes at once as the embedder takes texts, one at least."""
        batch: list[_Texts] = []
        rows = 0
        for note_id, path in waiting:
            batch.append(self._texts(note_id, path, generation))
            rows += len(batch[-1].rows)
            if rows >= self.embedder.batch:
                yield batch
                batch, rows = [], 0
        if batch:
            yield batch

    def _texts(self, note_id: int, path: str, generation: Generation) -> _Texts:
        with self.database.reading() as db:
            wanted = vectors.places_without_vectors(db, note_id, generation.shelf)
        kept = self.ready.take(note_id) if self.ready is not None else None
        if kept is not None and {id_: hash_of(words) for id_, words in kept[1]} == wanted:
            return _Texts(note_id, *kept)  # else another process has changed it since
        try:
            file = self.vault.read(path)
        except (SimplememError, OSError):
            self.unreadable.add(note_id)
            return _Texts(note_id, "", [])
        note = read_note(file.data)
        if self.embedder.remote and private_reason(path, note, self.private) is not None:
            return _Texts(note_id, file.sha256, [])
        facts = facts_of(path, note, file.entry.mtime_ns)
        rows = [(id_, words) for id_, words in to_embed(note_id, facts) if wanted.get(id_) == hash_of(words)]
        return _Texts(note_id, file.sha256, rows)

    def _embed(self, batch: Sequence[_Texts]) -> int:
        """Embed some notes in one batch; a text that is both a passage and a block only once. A note that has changed
        meanwhile is left for later."""
        distinct = list(dict.fromkeys(words for texts in batch if texts.sha256 for _, words in texts.rows))
        made, refused = self._asked(distinct)
        with self.database.writing() as db:
            found = vectors.generation_of(db, self.embedder.name)
            if found is None:
                self.lost = True
                return 0
            self._must_fit(found, made)
            if made and not found.dimension:
                vectors.set_dimension(db, found, len(next(iter(made.values()))))
            done = 0
            for texts in batch:
                whys = [refused[words] for _, words in texts.rows if words in refused]
                rows = {id_: made[words] for id_, words in texts.rows if words in made}
                if texts.sha256 and vectors.put(db, texts.note, texts.sha256, rows, found.shelf, "".join(whys[:1])):
                    done += 1
            return done

    def _must_fit(self, generation: Generation, made: Mapping[str, bytes]) -> None:
        widths = {len(vector) for vector in made.values()} | ({generation.dimension} - {0})
        if len(widths) > 1:
            raise Unavailable(
                f"{self.embedder.name} gives vectors of {' and '.join(map(str, sorted(widths)))} numbers; "
                "it is not the model it was",
                hint="`simplemem index --rebuild` makes all vectors with the model as it is now.",
            )

    def _asked(self, texts: list[str]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Ask the embedder. When it refuses a batch, the halves are asked until the text is found that it refuses."""
        if not texts:
            return {}, {}
        given = texts if self.embedder.reads_sentences else [without_stop_words(words) for words in texts]
        try:
            made = dict(zip(texts, self.embedder.documents(given, stopped=self.stopped), strict=True))
        except Refused as error:
            if not self.took_any:  # does it refuse this text, or every text?
                self.embedder.documents(["memory"], stopped=self.stopped)
                self.took_any = True
            if len(texts) == 1:
                return {}, {texts[0]: error.message}
        else:
            self.took_any = True
            return made, {}
        half = len(texts) // 2
        first, refused = self._asked(texts[:half])
        second, refused_too = self._asked(texts[half:])
        return first | second, refused | refused_too
