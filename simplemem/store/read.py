"""One memory as it is read: now or earlier, whole or a section. What the index knows of these bytes it tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from simplemem.errors import NotFound
from simplemem.index.text import Head, head_of
from simplemem.models import LinkOut, Memory
from simplemem.note.header import read_header
from simplemem.note.names import name_of
from simplemem.note.note import Note, read_note
from simplemem.note.sections import find_section
from simplemem.note.tags import Tag, tag_map
from simplemem.note.words import count_tokens
from simplemem.obsidian.links import resolve_link
from simplemem.store.core import Core
from simplemem.store.earlier_texts import note_at, nothing_there, text_of
from simplemem.store.git_history import means_commit
from simplemem.store.history import path_with_a_past


def read(
    core: Core,
    name: str,
    *,
    section: str | None = None,
    version: str | None = None,
    at: str | None = None,
) -> Memory:
    """One memory, or one section of it (a heading, "A#B", or "^block"), now or at a version, date or commit."""
    core.prepare(vectors=False)  # for what its name means, and what links to it
    if version is None and at is None:
        return _read_now(core, core.path_meant(name), section)
    if version is not None and (data := core.vault.history.content(version.lower())) is not None:
        return memory_of(core, core.path_meant(name), data, section, version)
    if version is not None and means_commit(core, version):
        at = version
    if at is not None or version is None:
        path, at = path_with_a_past(core, name), at or ""
        then = note_at(core, path, at, name=name)
        if then.data is None:
            raise nothing_there(name_of(path), at, then)
        memory = memory_of(core, then.path, then.data, section, at)
        said = filter(None, (memory.problem, f"not certain: {then.doubt}" if then.doubt else ""))
        return replace(memory, problem="; ".join(said) or None)
    found = core.changes.find(version)
    kept = found.after if found.after is not None else found.before
    path = found.new_path or found.path
    if kept is None or (data := text_of(core, kept, path, found.path)) is None:
        raise NotFound(f"the text of version {version} is no longer kept")
    return memory_of(core, path, data, section, version)


class NoteText(NamedTuple):
    """A note as it is written, and what keeps it from being read as one."""

    text: str
    problem: str | None


def read_text(
    core: Core, name: str, *, version: str | None = None, at: str | None = None
) -> NoteText:
    """The whole text of a memory and nothing else of it: no links, headings or tokens, which of a long note cost most."""
    if version is not None or at is not None:
        memory = read(core, name, version=version, at=at)
        return NoteText(memory.text, memory.problem)
    file = core.vault.read(core.path_meant(name))
    note = read_note(file.data)
    return NoteText(note.text, note.problem)


def _read_now(core: Core, path: str, section: str | None) -> Memory:
    file = core.vault.read(path)
    core.remember(file)
    known = core.fresh(
        lambda: core.index.outline(path), lambda found: () if found is None else (found.row,)
    )
    if section or known is None or known.row.sha256 != file.sha256:
        return memory_of(core, path, file.data, section, None, file.entry.mtime_ns)
    text, row = file.data.decode("utf-8", "replace"), known.row
    tags = [Tag(name, source) for name, source in known.tags]
    links = [
        _link(one.target, one.path, one.ambiguous, one.form, one.line, one.display)
        for one in known.links
    ]
    head = Head(row.title, row.description, row.type, row.created, row.modified)
    note = Note(text, row.sha256, read_header(text), row.problem)
    return _memory(core, path, note, head, (note.content_start, len(text)), tags, links)


def memory_of(
    core: Core, path: str, data: bytes, section: str | None, version: str | None, mtime: int = 0
) -> Memory:
    """A memory made of a text, which need not be what stands in the vault now."""
    note, named, links = read_note(data), core.index.files_named, []
    for link in note.links:
        meant = resolve_link(link.target, path, named)
        links.append(
            _link(link.target, meant.path, meant.ambiguous, link.kind(), link.line, link.display)
        )
    span = (
        find_section(note.text, note.body, section)
        if section
        else (note.content_start, len(note.text))
    )
    if span is None:
        headings = [heading.text for heading in note.body.headings][:50]
        hint = "" if headings else "The note has no headings. Read it without a section."
        raise NotFound(f"no section {section!r} in {name_of(path)}", hint=hint, candidates=headings)
    return replace(
        _memory(core, path, note, head_of(path, note, mtime), span, note.tags, links),
        version=version,
    )


def _link(
    target: str, path: str | None, others: tuple[str, ...], kind: str, line: int, display: str
) -> LinkOut:
    shown = target if path is None else name_of(path)
    return LinkOut(
        shown, path is not None, kind, line, display, tuple(name_of(other) for other in others)
    )


def _memory(
    core: Core,
    path: str,
    note: Note,
    head: Head,
    span: tuple[int, int],
    tags: Sequence[Tag],
    links: list[LinkOut],
) -> Memory:
    content, properties = note.text[slice(*span)], note.header.properties
    linking = dict.fromkeys(name_of(link.source) for link in core.index.links(path))
    return Memory(
        name_of(path), path, head.title, head.description, head.type or "memory", head.created or None, head.modified,
        tuple(tag.name for tag in tags), tag_map(tags, properties), note.aliases, dict(properties),
        content, note.text, note.sha256, tuple(links), tuple(linking), count_tokens(content), note.problem,
        content_line=note.text.count("\n", 0, span[0]) + 1,
    )  # fmt: skip
