"""What is wrong with a vault or its index, found without changing anything.

Errors are what would lose or hide something; warnings are what a person will want to know; notes are only said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simplemem.embed import Embedder
from simplemem.index import fill
from simplemem.index.counts import DUMPED, dump
from simplemem.index.database import Database
from simplemem.index.generations import NOW
from simplemem.index.index import Index
from simplemem.index.sync import Progress, Sync
from simplemem.memory import Finding
from simplemem.note.names import compare_key, name_of
from simplemem.store.embedding import Embedding
from simplemem.vault.vault import Vault

Row = tuple[Any, ...]

_SHOWN = 20  # rows in which two indexes differ


def examine(
    vault: Vault,
    index: Index,
    rebuilt: Database,
    fresh: Sync,
    embedding: Embedding,
    progress: Progress | None,
) -> Iterator[Finding]:
    """All findings, worst kind first. `rebuilt` is an empty index beside ours, which `fresh` fills."""
    embedder, _ = embedding.wanted()
    damage = list(_damage(index))
    yield from damage
    fresh.scan(progress)
    if not damage:
        with_vectors = embedder is not None and _can_be_made_again(index, embedder)
        if embedder is not None and with_vectors:
            fill.fill(vault, rebuilt, embedder, progress, ready=fresh.waiting)
        yield from _index_equals_rebuilt(index, rebuilt, with_vectors=with_vectors)
    if damage:
        return  # the rest is asked of the index, once it is made anew
    yield from _of_vectors(embedding.facts())
    yield from _unreadable(vault, index, fresh)
    yield from _colliding_names(index)
    yield from _broken_links(index)
    yield from _stray_files(vault)


def _damage(index: Index) -> Iterator[Finding]:
    """What SQLite finds wrong with the file as it lies there."""
    for problem in index.database.check():
        yield Finding(
            "index",
            "error",
            "",
            f"the index is damaged: {problem}",
            "`simplemem index --rebuild` makes it anew.",
        )


def _can_be_made_again(index: Index, embedder: Embedder) -> bool:
    """Whether all vectors in use are of an embedder that costs nothing: a model is not asked for all of them again."""
    found = index.generation_of(embedder.name)
    return found is not None and found.shelf == NOW and not embedder.reads_sentences and not index.pending(found)


def _of_vectors(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """What keeps notes from being found by meaning, out of `Embedding.facts`."""
    if failure := facts["trouble"] or facts["last_failure"]:
        yield Finding("vectors", "warning", "", failure)
    if facts["wanted"] not in ("none", facts["in_use"]) and facts["in_use"] != "none":
        yield Finding(
            "vectors",
            "note",
            "",
            f"the vectors in use are of {facts['in_use']}, and {facts['wanted']} is set",
            "`simplemem index` makes those of the embedder that is set, beside the others until they are complete.",
        )
    for refused in facts["refused"]:
        message = f"the embedder would not take all of its text, which is found by words only: {refused['why']}"
        yield Finding("vectors", "warning", refused["path"], message)
    if facts["private"]:
        message = f"{facts['private']} private notes have no vectors: their text is not sent to {facts['wanted']}"
        yield Finding("vectors", "note", "", message)


def _index_equals_rebuilt(index: Index, rebuilt: Database, *, with_vectors: bool) -> Iterator[Finding]:
    """The promise: rebuilt beside itself it is equal, row for row. Vectors that are still to be made are no difference."""
    shown = 0
    with index.database.reading() as ours, rebuilt.reading() as theirs:
        for here, there in _differing(dump(ours, vectors=with_vectors), dump(theirs, vectors=with_vectors)):
            row = here or there or ("", "")
            yield Finding(
                "index",
                "error",
                str(row[1]) if len(row) > 1 else "",
                f"the index holds {_short(here)} where a rebuilt one holds {_short(there)}",
                "`simplemem index --rebuild` makes it anew; please report how it came to this.",
            )
            shown += 1
            if shown >= _SHOWN:
                return


def _differing(ours: Iterator[Row], theirs: Iterator[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows of two dumps that only one of them has, or that say another thing at the same place."""
    here, there = next(ours, None), next(theirs, None)
    while here is not None or there is not None:
        if here == there:
            here, there = next(ours, None), next(theirs, None)
        elif there is None or (here is not None and _place(here) < _place(there)):
            yield here, None
            here = next(ours, None)
        elif here is None or _place(there) < _place(here):
            yield None, there
            there = next(theirs, None)
        else:
            yield here, there
            here, there = next(ours, None), next(theirs, None)


def _place(row: Row) -> tuple[int, str, str]:
    """Where a row stands in a dump: its table, its note, its number there."""
    number = row[2] if len(row) > 2 else ""
    return DUMPED.index(row[0]), str(row[1]), f"{number:09d}" if isinstance(number, int) else str(number)


def _short(row: tuple[object, ...] | None) -> str:
    text = "nothing" if row is None else repr(row)
    return text if len(text) <= 160 else text[:157] + "..."


def _unreadable(vault: Vault, index: Index, fresh: Sync) -> Iterator[Finding]:
    for problem in index.counts()["problems"]:
        yield Finding(
            "header",
            "warning",
            problem["path"],
            f"served and searched, but not changed by any tool: {problem['problem']}",
            "Mend it in an editor.",
        )
    not_indexed = {**{problem.path: problem.reason for problem in vault.problems}, **fresh.skipped}
    for path, why in sorted(not_indexed.items()):
        yield Finding("file", "warning", path, f"not indexed: {why}")


def _colliding_names(index: Index) -> Iterator[Finding]:
    """Names that are one on a Mac or on Windows: by case, or by how an accent is written."""
    seen: dict[str, str] = {}
    for path in sorted(index.files()):
        key = compare_key(path)
        if key in seen:
            yield Finding(
                "names",
                "warning",
                path,
                f"{path} and {seen[key]} are the same name on some systems",
                "Rename one of them before the vault is synced to another computer.",
            )
        seen.setdefault(key, path)


def _broken_links(index: Index) -> Iterator[Finding]:
    for link in index.all_links():
        if link.path is None:
            yield Finding("links", "note", link.source, f"line {link.line}: [[{link.target}]] leads nowhere")
        elif link.ambiguous:
            others = ", ".join(name_of(path) for path in link.ambiguous)
            yield Finding("links", "note", link.source, f"line {link.line}: [[{link.target}]] could mean {others}")


def _stray_files(vault: Vault) -> Iterator[Finding]:
    for path in vault.strays():
        yield Finding(
            "files",
            "warning",
            path,
            "left by a write that was cut short",
            "The next start of simplemem puts it away.",
        )
