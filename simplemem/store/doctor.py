"""What is wrong with a vault or its index, found without changing anything.

Errors are what would lose or hide something; warnings are what a person will want to know; notes are only said.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from simplemem.embed import Embedder
from simplemem.index import fill
from simplemem.index.counts import dump
from simplemem.index.database import Database
from simplemem.index.index import Index
from simplemem.index.sync import Progress, Sync
from simplemem.memory import Finding
from simplemem.note.names import compare_key, name_of
from simplemem.vault.vault import Vault

_SHOWN = 20  # rows in which two indexes differ


def examine(
    vault: Vault,
    index: Index,
    rebuilt: Database,
    fresh: Sync,
    embedder: Embedder | None,
    progress: Progress | None,
) -> Iterator[Finding]:
    """All findings but damage, worst kind first. `rebuilt` is an empty index beside ours, which `fresh` fills."""
    fresh.scan(progress)
    if embedder is not None:
        fill.fill(vault, rebuilt, embedder, progress)
    yield from _index_equals_rebuilt(index, rebuilt)
    yield from _unreadable(index, fresh)
    yield from _colliding_names(index)
    yield from _broken_links(index)
    yield from _stray_files(vault)


def is_whole(index: Index) -> Iterator[Finding]:
    """What SQLite finds wrong with the file as it lies there."""
    for problem in index.database.check():
        yield Finding(
            "index",
            "error",
            "",
            f"the index is damaged: {problem}",
            "`simplemem index --rebuild` makes it anew.",
        )


def _index_equals_rebuilt(index: Index, rebuilt: Database) -> Iterator[Finding]:
    """The promise: rebuilt beside itself it is equal, row for row."""
    shown = 0
    with index.database.reading() as ours, rebuilt.reading() as theirs:
        for here, there in zip_longest(dump(ours), dump(theirs)):
            if here == there:
                continue
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


def _short(row: tuple[object, ...] | None) -> str:
    text = "nothing" if row is None else repr(row)
    return text if len(text) <= 160 else text[:157] + "..."


def _unreadable(index: Index, fresh: Sync) -> Iterator[Finding]:
    for problem in index.counts()["problems"]:
        yield Finding(
            "header",
            "warning",
            problem["path"],
            f"served and searched, but not changed by any tool: {problem['problem']}",
            "Mend it in an editor.",
        )
    for path, why in sorted(fresh.skipped.items()):
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
