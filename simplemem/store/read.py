"""Read one note as a memory: now or at an earlier moment, as a whole or one section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from simplemem.errors import NotFound
from simplemem.index.api import NoteMetadata, NoteRow, Outline
from simplemem.index.changes import ChangeTable
from simplemem.index.service import IndexService
from simplemem.index.text import read_metadata
from simplemem.models import LinkOut, Memory
from simplemem.note.header import read_header
from simplemem.note.names import name_of
from simplemem.note.note import Note, Tag, read_note, tag_map
from simplemem.note.passages import find_section
from simplemem.note.words import count_tokens
from simplemem.obsidian.settings import resolve_link
from simplemem.store.earlier_texts import EarlierTexts, nothing_there
from simplemem.store.git_history import GitHistory
from simplemem.store.history import NoteHistory
from simplemem.store.vault_index import IndexKeeper, NameResolver, NoteReader
from simplemem.vault.source import NoteSource
from simplemem.vault.values import File

_MAX_HEADINGS = 50  # that an error names


class NoteText(NamedTuple):
    """The text of a note, and why it cannot be read as a note; None if it can."""

    text: str
    problem: str | None


class MemoryReader:
    """Reads single notes as memories. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        changes: ChangeTable,
        *,
        reader: NoteReader,
        resolver: NameResolver,
        keeper: IndexKeeper,
        texts: EarlierTexts,
        commits: GitHistory,
        history: NoteHistory,
    ) -> None:
        self._vault = vault
        self._kept_texts = vault.history
        self._index = index
        self._changes = changes
        self._reader = reader
        self._resolver = resolver
        self._keeper = keeper
        self._texts = texts
        self._commits = commits
        self._history = history

    def read(
        self,
        name: str,
        *,
        section: str | None = None,
        version: str | None = None,
        at: str | None = None,
    ) -> Memory:
        """Return a note, or one section of it, now or at a version, date or commit.

        A section is a heading, a path of headings ("A#B"), or a block ("^block"). `version` may
        also be the hash of a text. Raises NotFound if there was no such note or section, or if its
        text is no longer kept.
        """
        # For what the name means, and for what links to the note.
        self._keeper.prepare(vectors=False)
        if version is None and at is None:
            return self._read_now(self._resolver.path_of(name), section)

        if version is not None:
            data = self._kept_texts.content(version.lower())
            if data is not None:
                return self._memory_of(self._resolver.path_of(name), data, section, version)
            if self._commits.means_commit(version):
                at = version
            elif at is None:
                return self._read_version(version, section)
        return self._read_then(name, at or "", section)

    def read_text(
        self,
        name: str,
        *,
        version: str | None = None,
        at: str | None = None,
    ) -> NoteText:
        """Return the whole text of a note, now or at a version, date or commit.

        It is quicker than `read`, as links, headings and tokens are not looked for. Raises as
        `read` does.
        """
        if version is not None or at is not None:
            memory = self.read(name, version=version, at=at)
            return NoteText(memory.text, memory.problem)
        file = self._vault.read(self._resolver.path_of(name))
        note = read_note(file.data)
        return NoteText(note.text, note.problem)

    def _read_now(self, path: str, section: str | None) -> Memory:
        """Return a note as it is on the disk. What the index knows of it is not parsed again."""
        file = self._vault.read(path)
        self._reader.remember(file)
        outline = self._keeper.revalidated(lambda: self._index.outline(path), _rows_of)
        if section or outline is None or outline.row.sha256 != file.sha256:
            return self._memory_of(path, file.data, section, None, file.entry.mtime_ns)
        return self._memory_by_outline(file, outline)

    def _memory_by_outline(self, file: File, outline: Outline) -> Memory:
        """Return a memory whose tags and links are those that the index has."""
        row = outline.row
        text = file.data.decode("utf-8", "replace")
        note = Note(text, row.sha256, read_header(text), row.problem)
        head = NoteMetadata(row.title, row.description, row.type, row.created, row.modified)
        tags = [Tag(name, source) for name, source in outline.tags]
        links = [
            _link(link.target, link.path, link.ambiguous, link.form, link.line, link.display)
            for link in outline.links
        ]
        span = (note.content_start, len(text))
        return self._memory(row.path, note, head, span, tags, links)

    def _read_version(self, version: str, section: str | None) -> Memory:
        """Return the text that a version left, or took away if it deleted the note."""
        change = self._changes.find(version)
        path = change.new_path or change.path
        digest = change.before if change.after is None else change.after
        data = None
        if digest is not None:
            data = self._texts.text_of(digest, path, change.path)
        if data is None:
            raise NotFound(f"the text of version {version} is no longer kept")
        return self._memory_of(path, data, section, version)

    def _read_then(self, name: str, at: str, section: str | None) -> Memory:
        """Return a note as it was at a moment. Its `problem` says what is uncertain about that."""
        path = self._history.path_with_a_past(name)
        then = self._texts.note_at(path, at, name=name)
        if then.data is None:
            raise nothing_there(name_of(path), at, then)

        memory = self._memory_of(then.path, then.data, section, at)
        problems = [memory.problem] if memory.problem else []
        if then.doubt:
            problems.append(f"not certain: {then.doubt}")
        return replace(memory, problem="; ".join(problems) or None)

    def _memory_of(
        self,
        path: str,
        data: bytes,
        section: str | None,
        version: str | None,
        mtime_ns: int = 0,
    ) -> Memory:
        """Return a memory made of a text, which need not be the current text at the path."""
        note = read_note(data)
        span: tuple[int, int] | None = (note.content_start, len(note.text))
        if section:
            span = find_section(note.text, note.body, section)
        if span is None:
            raise _no_section(section or "", path, note)

        links = []
        for link in note.links:
            target = resolve_link(link.target, path, self._index.files_named)
            links.append(
                _link(
                    link.target,
                    target.path,
                    target.ambiguous,
                    link.kind(),
                    link.line,
                    link.display,
                )
            )
        head = read_metadata(path, note, mtime_ns)
        memory = self._memory(path, note, head, span, note.tags, links)
        return replace(memory, version=version)

    def _memory(
        self,
        path: str,
        note: Note,
        head: NoteMetadata,
        span: tuple[int, int],
        tags: Sequence[Tag],
        links: Sequence[LinkOut],
    ) -> Memory:
        """Return a memory whose content is a span of the text of its note."""
        start, stop = span
        content = note.text[start:stop]
        properties = note.header.properties
        links_to_note = self._index.links(path)
        sources = dict.fromkeys(name_of(link.source) for link in links_to_note)
        return Memory(
            name=name_of(path),
            path=path,
            title=head.title,
            description=head.description,
            type=head.type or "memory",
            created=head.created or None,
            modified=head.modified,
            tags=tuple(tag.name for tag in tags),
            tag_map=tag_map(tags, properties),
            aliases=note.aliases,
            frontmatter=dict(properties),
            content=content,
            text=note.text,
            sha256=note.sha256,
            links=tuple(links),
            backlinks=tuple(sources),
            tokens=count_tokens(content),
            problem=note.problem,
            content_line=note.text.count("\n", 0, start) + 1,
        )


def _rows_of(outline: Outline | None) -> Iterable[NoteRow]:
    """Return the rows that an answer about one note shows."""
    return () if outline is None else (outline.row,)


def _no_section(section: str, path: str, note: Note) -> NotFound:
    """Return the error for a section that a note does not have."""
    headings = [heading.text for heading in note.body.headings][:_MAX_HEADINGS]
    hint = ""
    if not headings:
        hint = "The note has no headings. Read it without a section."
    message = f"no section {section!r} in {name_of(path)}"
    return NotFound(message, hint=hint, candidates=headings)


def _link(
    target: str,
    path: str | None,
    ambiguous: Sequence[str],
    kind: str,
    line: int,
    display: str,
) -> LinkOut:
    """Return a link as callers see it: by the name that it leads to, or as it is written."""
    return LinkOut(
        target if path is None else name_of(path),
        path is not None,
        kind,
        line,
        display,
        tuple(name_of(other) for other in ambiguous),
    )
