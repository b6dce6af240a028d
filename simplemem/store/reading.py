"""One memory as it is read: now or at an earlier version, whole or a section of it."""

from __future__ import annotations

from simplemem.errors import NotFound
from simplemem.index.facts import head_of
from simplemem.memory import LinkOut, Memory
from simplemem.note.body import find_section
from simplemem.note.names import name_of
from simplemem.note.note import Note, read_note
from simplemem.note.tags import tag_map, tag_names
from simplemem.note.words import count_tokens
from simplemem.store.core import Core
from simplemem.store.history import bytes_at
from simplemem.store.names import path_meant
from simplemem.vault.links import resolve


def read_memory(core: Core, name: str, section: str | None, version: str | None) -> Memory:
    """A memory as it stands in the vault, or as it stood at a version."""
    if version is not None and is_kept(core, version):
        return _memory_of_hash(core, name, version, section)
    if version is not None:
        return _memory_at(core, version, section)
    return _memory_now(core, path_meant(core, name), section)


def is_kept(core: Core, sha256: str) -> bool:
    """Whether this is the hash of a text that the history keeps, as failures name texts."""
    return core.vault.history.content(sha256.lower()) is not None


def _memory_now(core: Core, path: str, section: str | None) -> Memory:
    file = core.vault.read(path)
    core.read_lately.keep(file.sha256, file.data)
    core.recheck([path])
    return _memory(core, path, read_note(file.data), file.entry.mtime_ns, section, None)


def _memory_at(core: Core, version: str, section: str | None) -> Memory:
    found = core.changes.find(version)
    kept = found.after if found.after is not None else found.before
    data = None if kept is None else bytes_at(core, found, kept)
    if data is None:
        raise NotFound(f"the text of version {version} is no longer kept")
    return _memory(core, found.new_path or found.path, read_note(data), None, section, version)


def memory_of(core: Core, path: str, data: bytes, section: str | None, version: str) -> Memory:
    """A memory made of a text that is not what stands in the vault now."""
    return _memory(core, path, read_note(data), None, section, version)


def _memory_of_hash(core: Core, name: str, sha256: str, section: str | None) -> Memory:
    """A text by its hash, as failures name them: a version, or what a change that was refused would have written."""
    data = core.vault.history.content(sha256.lower())
    if data is None:
        raise NotFound(f"no text with the sha256 {sha256} is kept", hint="memory_history lists the versions that are.")
    return _memory(core, path_meant(core, name), read_note(data), None, section, sha256)


def _memory(
    core: Core, path: str, note: Note, mtime_ns: int | None, section: str | None, version: str | None
) -> Memory:
    facts = head_of(path, note, mtime_ns or 0)
    start, stop = _span(path, note, section)
    content = note.text[start:stop]
    return Memory(
        name=name_of(path),
        path=path,
        title=facts.title,
        description=facts.description,
        type=facts.type or "memory",
        created=facts.created or None,
        modified=facts.modified,
        tags=tuple(tag_names(note.tags)),
        tag_map=tag_map(note.tags, note.header.properties),
        aliases=note.aliases,
        frontmatter=dict(note.header.properties),
        content=content,
        text=note.text,
        sha256=note.sha256,
        links=_links_out(core, path, note),
        backlinks=tuple(dict.fromkeys(name_of(link.source) for link in core.index.links_to(path))),
        headings=tuple((h.level, h.text, h.line) for h in note.body.headings),
        tokens=count_tokens(content),
        problem=note.problem,
        version=version,
        content_line=note.text.count("\n", 0, start) + 1,
    )


def _span(path: str, note: Note, section: str | None) -> tuple[int, int]:
    if not section:
        return note.content_start, len(note.text)
    span = find_section(note.text, note.body, section)
    if span is None:
        headings = [heading.text for heading in note.body.headings][:50]
        hint = "" if headings else "It has no headings. Read it without a section."
        raise NotFound(f"{name_of(path)} has no section {section!r}", hint=hint, candidates=headings)
    return span


def _links_out(core: Core, path: str, note: Note) -> tuple[LinkOut, ...]:
    found = []
    named = core.index.named()
    for link in note.links:
        meant = resolve(link.target, path, named)
        kind = "property" if link.property is not None else "embed" if link.embed else link.form
        shown = name_of(meant.path) if meant.path is not None else link.target
        others = tuple(name_of(other) for other in meant.ambiguous)
        found.append(LinkOut(shown, meant.path is not None, kind, link.line, link.display, others))
    return tuple(found)
