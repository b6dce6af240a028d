"""The index: whether its file is whole, whether it holds what one made anew would hold, and what lacks its vectors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from simplemem.errors import SimplememError
from simplemem.index import fill
from simplemem.index.audit import Difference, Row, differences
from simplemem.index.database import Database
from simplemem.index.notes import stat_of
from simplemem.index.sync import Sync
from simplemem.index.vectors import NOW
from simplemem.memory import Finding
from simplemem.services.embed import Embedder
from simplemem.store.doctor.case import Case, MakeIndexAnew, Noticed, remark, warning

_SHOWN = 20  # rows in which two indexes differ


def check_index(case: Case) -> Iterator[Noticed]:
    """The promise: rebuilt beside itself it is equal, row for row. Vectors that are still to be made are no difference."""
    damage = case.index.database.check()
    for problem in damage:
        yield _of_index("", f"the index is damaged: {problem}", "`simplemem index --rebuild` makes it anew.")
    for here, there in _differences(case) if not damage else ():
        row = here or there or ("", "")
        message = f"the index holds {_short(here)} where a rebuilt one holds {_short(there)}"
        hint = "`simplemem index --rebuild` makes it anew; please report how it came to this."
        yield _of_index(str(row[1]) if len(row) > 1 else "", message, hint)


def _of_index(path: str, message: str, hint: str) -> Noticed:
    return Noticed(Finding("index", "error", path, message, hint, fix="the index is made anew"), MakeIndexAnew())


def _differences(case: Case) -> list[Difference]:
    case.core.changes.newest()  # the table of changes has all that is in the log
    before = case.entries.keys()  # what lies there before anything is read
    with _beside(case) as (rebuilt, fresh):
        found = _compared(case, rebuilt, fresh)
        if found and (changed := _changed_meanwhile(case, fresh, before)):
            # Under the lock nobody writes through simplemem, and both are brought up to that moment.
            with nullcontext() if case.vault.read_only else case.vault.lock():
                case.core.look_at(changed)
                found = _compared(case, rebuilt, fresh)
    return found


@contextmanager
def _beside(case: Case) -> Iterator[tuple[Database, Sync]]:
    """An empty index next to ours, and what fills it; gone afterwards, however the work ends."""
    rebuilt = case.index.build_beside()
    try:
        yield rebuilt, case.core.sync_of(rebuilt)
    finally:
        rebuilt.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{rebuilt.path}{suffix}").unlink(missing_ok=True)


def _compared(case: Case, rebuilt: Database, fresh: Sync) -> list[Difference]:
    """The first rows in which ours is not what the other is, which is brought in step first."""
    fresh.scan(case.tell)
    embedder = case.core.embedding.wanted()[0]
    with_vectors = embedder is not None and _can_be_made_again(case, embedder)
    if embedder is not None and with_vectors:
        fill.fill(case.vault, rebuilt, embedder, case.tell, ready=fresh.waiting, private=fresh.private)
        with_vectors = _can_be_made_again(case, embedder)  # unless a note came meanwhile, and waits for its vectors
    found: list[Difference] = []
    with case.index.database.reading() as ours, rebuilt.reading() as theirs:
        tell = lambda done, of: case.tell("compare", done, of)  # noqa: E731
        for difference in differences(ours, theirs, vectors=with_vectors, tell=tell):
            found.append(difference)
            if len(found) >= _SHOWN:
                break
    return found


def _changed_meanwhile(case: Case, fresh: Sync, before: Collection[str]) -> set[str]:
    """What another program has changed since our index, or the one beside it, was brought in step."""
    entries = {entry.path: entry for entry in case.vault.scan()}
    changed = fresh.scan().changed() | (entries.keys() ^ set(before))
    for path, known in case.index.all_known().items():
        if (there := entries.get(path)) is None or stat_of(there) != known.stat:
            changed.add(path)
    return changed


def _can_be_made_again(case: Case, embedder: Embedder) -> bool:
    """Whether all vectors in use are of an embedder that costs nothing: a model is not asked for all of them again."""
    ours = next((each for each in case.index.generations() if each.embedder == embedder.name), None)
    if ours is None or ours.shelf != NOW or embedder.reads_sentences:
        return False
    return case.index.progress(embedder.name, ours.remote)[0] == 0


def _short(row: Row | None) -> str:
    text = "nothing" if row is None else repr(row)
    return text if len(text) <= 160 else text[:157] + "..."


def check_vectors(case: Case) -> Iterator[Noticed]:
    """What keeps notes from being found by meaning."""
    try:
        facts = case.core.embedding.facts()
    except SimplememError as error:
        yield warning("vectors", "", error.message, error.hint)
        return
    if failure := facts["trouble"] or facts["last_failure"]:
        yield warning("vectors", "", failure)
    if facts["wanted"] not in ("none", facts["in_use"]) and facts["in_use"] != "none":
        message = f"the vectors in use are of {facts['in_use']}, and {facts['wanted']} is set"
        hint = "`simplemem index` makes those of the embedder that is set, beside the others until they are complete."
        yield remark("vectors", "", message, hint)
    for refused in facts["refused"]:
        message = f"the embedder would not take all of its text, which is found by words only: {refused['why']}"
        yield warning("vectors", refused["path"], message)
    if facts["private"]:
        message = f"{facts['private']} private notes have no vectors: their text is not sent to {facts['wanted']}"
        yield remark("vectors", "", message)
