"""Read one note as a memory: now or at an earlier moment, as a whole or one section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
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
    """The text of a note, and why the note must not be rewritten; None if it may be."""

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

        `section` is a heading, a path of headings ("A#B"), or a block ("^block"). `version` is a
        version such as "v12", a commit, or the hash of a text. A version such as "v12" without `at`
        also names the note: `name` is ignored. `at` is a version, date or commit. If both are
        given, `version` is ignored unless it is a commit or a hash. If the text at a moment is
        uncertain, `problem` of the result says why.

        The index is brought up to date first. Raises NotFound if there was no such note, version or
        section, or if the text is no longer kept; Ambiguous if several notes have the name; Invalid
        if `at` is no date.
        """
        # The index resolves the name, and has the links to the note.
        self._keeper.prepare(vectors=False)
        if version is None and at is None:
            return self._read_now(self._resolver.path_of(name), section)

        if version is not None:
            data = self._kept_texts.content(version.lower())
            if data is not None:
                return self._memory_of_text(self._resolver.path_of(name), data, section, version)
            if self._commits.means_commit(version):
                at = version
            elif at is None:
                return self._read_version(version, section)
        return self._read_at_moment(name, at or "", section)

    def read_text(
        self,
        name: str,
        *,
        version: str | None = None,
        at: str | None = None,
    ) -> NoteText:
        """Return the whole text of a note, now or at a version, date or commit.

        Without `version` and `at`, it is quicker than `read`, as links, headings and tokens are not
        looked for. With them, it takes as long. Raises as `read` does.
        """
        if version is not None or at is not None:
            memory = self.read(name, version=version, at=at)
            return NoteText(memory.text, memory.problem)
        file = self._vault.read(self._resolver.path_of(name))
        note = read_note(file.data)
        return NoteText(note.text, note.problem)

    def _read_now(self, path: str, section: str | None) -> Memory:
        """Return a note, or a section of it, as it is on the disk now.

        Remembers its text, so that a later Conflict can show what has changed since. If the index
        has this very text and the whole note is asked for, title, tags and links are taken from the
        index. Raises NotFound if there is no such note or section.
        """
        file = self._vault.read(path)
        self._reader.remember(file)
        outline = self._keeper.revalidated(lambda: self._index.outline(path), _rows_of)
        if section or outline is None or outline.row.sha256 != file.sha256:
            return self._memory_of_text(path, file.data, section, None, file.entry.mtime_ns)
        return self._memory_by_outline(file, outline)

    def _memory_by_outline(self, file: File, outline: Outline) -> Memory:
        """Return a whole note whose title, dates, tags and links are those that the index has."""
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
        return self._build_memory(row.path, note, head, span, tags, links)

    def _read_version(self, version: str, section: str | None) -> Memory:
        """Return the note with the text that a version left, or deleted if it deleted the note.

        Raises NotFound for an unknown version, or if the text is no longer kept.
        """
        change = self._changes.find(version)
        path = change.new_path or change.path
        digest = change.before if change.after is None else change.after
        data = None
        if digest is not None:
            data = self._texts.text_of(digest, path, change.path)
        if data is None:
            raise NotFound(f"the text of version {version} is no longer kept")
        return self._memory_of_text(path, data, section, version)

    def _read_at_moment(self, name: str, at: str, section: str | None) -> Memory:
        """Return a note as it was at a moment; its `problem` says what is uncertain about that.

        Raises NotFound if the note did not exist then or its text is no longer kept, and what
        `path_with_a_past` and `note_at` raise.
        """
        path = self._history.path_with_a_past(name)
        then = self._texts.note_at(path, at, name=name)
        if then.data is None:
            raise nothing_there(name_of(path), at, then)

        memory = self._memory_of_text(then.path, then.data, section, at)
        problems = [memory.problem] if memory.problem else []
        if then.doubt:
            problems.append(f"not certain: {then.doubt}")
        return replace(memory, problem="; ".join(problems) or None)

    def _memory_of_text(
        self,
        path: str,
        data: bytes,
        section: str | None,
        version: str | None,
        mtime_ns: int = 0,
    ) -> Memory:
        """Return a memory made of a text, which need not be the current text at the path.

        `version` becomes that of the memory. `mtime_ns`, the time of the file, stands in for a
        missing `modified`. Links lead where they would lead now. Raises NotFound for an unknown
        section.
        """
        note = read_note(data)
        span: tuple[int, int] | None = (note.content_start, len(note.text))
        if section:
            span = find_section(note.text, note.body, section)
        if span is None:
            raise _no_section(section or "", path, note)

        # A long note may have the same link thousands of times.
        resolve = cache(lambda target: resolve_link(target, path, self._index.files_named))
        links = []
        for link in note.links:
            target = resolve(link.target)
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
        memory = self._build_memory(path, note, head, span, note.tags, links)
        return replace(memory, version=version)

    def _build_memory(
        self,
        path: str,
        note: Note,
        head: NoteMetadata,
        span: tuple[int, int],
        tags: Sequence[Tag],
        links: Sequence[LinkOut],
    ) -> Memory:
        """Return a memory whose content is a span of the text of its note.

        `span` is where the content starts, and where it ends (exclusive). The backlinks are those
        that the index has now.
        """
        start, stop = span
        content = note.text[start:stop]
        properties = note.header.properties
        links_to_note = self._index.links(path)
        sources = dict.fromkeys(name_of(link.source) for link in links_to_note)  # each once

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
    """Return the row of the note that an outline describes; nothing without an outline."""
    return () if outline is None else (outline.row,)


def _no_section(section: str, path: str, note: Note) -> NotFound:
    """Return the error for a section that a note does not have; it names up to 50 headings."""
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
    """Return a link as callers see it.

    `path` is the file that it leads to, None if it leads nowhere. The target of the result is the
    name of that file, else the `target` as it is written. `ambiguous` are other files that it may
    mean.
    """
    return LinkOut(
        target=target if path is None else name_of(path),
        resolved=path is not None,
        kind=kind,
        line=line,
        display=display,
        ambiguous=tuple(name_of(other) for other in ambiguous),
    )
