"""Finds out for the renderer where the links of a note lead, and reads the texts that it embeds.

All of it comes from a store, which has no more of the vault than the reader may see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.note.body import read_body
from simplemem.note.header import content_start, read_header
from simplemem.note.passages import find_section
from simplemem.web.markdown.addresses import lookup_target
from simplemem.web.markdown.context import (
    MAX_EMBED_DEPTH,
    MAX_EMBEDS,
    Authorship,
    NoteContext,
    embed_key,
)

if TYPE_CHECKING:
    from simplemem.models import BlamedLine
    from simplemem.store import EnhancedStore

_MAX_EMBEDDED_CHARACTERS: Final = 200_000  # of all embedded texts together, each counted once
_MAX_LINKS: Final = 20_000


class _Embed(NamedTuple):
    """A note, section or block that a text embeds. `path` is that of its note."""

    path: str
    subpath: str


class _LinksAndTexts:
    """Collects where links lead, and embedded texts. Guards both, and how many more are allowed.

    `links` and `texts` are those of `NoteContext`.
    """

    def __init__(self, store: EnhancedStore) -> None:
        self._extension = store.extension
        self._links_left = _MAX_LINKS
        self._characters_left = _MAX_EMBEDDED_CHARACTERS
        self.links: dict[str, dict[str, str | None]] = {}
        self.texts: dict[str, str] = {}

    def add_text(self, path: str, text: str, depth: int = 0) -> None:
        """Add the links of a text of the note at `path`, and what the text embeds.

        `depth` is the number of texts that the text is embedded in.
        """
        links = read_body(text, 0).links[: self._links_left]
        self._links_left -= len(links)
        self.add_targets(path, [link.target for link in links])
        if depth == MAX_EMBED_DEPTH:
            return

        embeds: dict[_Embed, None] = {}  # a dict keeps the order and has each embed once
        for link in links:
            embedded_path = self._path_of(path, link.target)
            if link.is_embed and embedded_path is not None:
                embeds[_Embed(embedded_path, link.subpath)] = None
        self._add_embeds(list(embeds), depth + 1)

    def add_targets(self, path: str, targets: Iterable[str]) -> None:
        """Add where links of the note at `path` lead. Empty targets mean the note itself."""
        known = self.links.setdefault(path, {})
        keys = [lookup_target(target) for target in targets]
        new_keys = [key for key in dict.fromkeys(keys) if key and key not in known]
        paths = self._extension.resolve_links([(key, path) for key in new_keys])
        known.update(zip(new_keys, paths, strict=True))

    def _path_of(self, source: str, target: str) -> str | None:
        """Return the path of the note that a link in `source` means; None for other files."""
        key = lookup_target(target)
        path: str | None = source
        if key:
            path = self.links[source].get(key)
        if path is None or not path.lower().endswith(".md"):
            return None
        return path

    def _add_embeds(self, embeds: Sequence[_Embed], depth: int) -> None:
        """Read what a text embeds, and add it with its own links, as far as the limits allow."""
        new_embeds = [embed for embed in embeds if embed_key(*embed) not in self.texts]
        paths = dict.fromkeys(embed.path for embed in new_embeds[:MAX_EMBEDS])
        notes = {note.path: note.text for note in self._extension.read(paths)}
        for embed in new_embeds:
            has_room = len(self.texts) < MAX_EMBEDS
            text = _text_of_embed(notes.get(embed.path), embed.subpath)
            if text is None or not has_room or len(text) > self._characters_left:
                continue
            self._characters_left -= len(text)
            self.texts[embed_key(*embed)] = text
            self.add_text(embed.path, text, depth)


def _text_of_embed(text: str | None, subpath: str) -> str | None:
    """Return the part of a note that an embed shows; None if there is no such part, or no note."""
    if text is None:
        return None

    header = read_header(text)
    if not subpath.strip("# "):
        return text[content_start(text, header) :]

    body = read_body(text, header.body_start)
    span = find_section(text, body, subpath.lstrip("#"))
    if span is None:
        return None
    start, end = span
    return text[start:end]


def read_context(
    store: EnhancedStore,
    path: str,
    text: str,
    *,
    property_targets: Iterable[str] = (),
    first_line: int = 1,
    can_create: bool = False,
    blamed_lines: Sequence[BlamedLine] = (),
) -> NoteContext:
    """Return what the renderer needs to know about a text of the note at `path`.

    `property_targets` are those of links in properties, `first_line` is the line of the file at
    which the text begins, and `blamed_lines` say who wrote the lines, if that is to be shown.
    """
    collected = _LinksAndTexts(store)
    collected.add_targets(path, property_targets)
    collected.add_text(path, text)
    return NoteContext(
        path=path,
        first_line=first_line,
        links=collected.links,
        texts=collected.texts,
        can_create=can_create,
        authorship=_authorship_of(blamed_lines),
    )


def _authorship_of(lines: Sequence[BlamedLine]) -> tuple[Authorship, ...]:
    """Return who wrote the lines of a note, with consecutive lines of one change together."""
    runs: list[Authorship] = []
    for line in lines:
        run = Authorship(line.number, line.kind, line.who, line.when)
        is_of_same_change = runs and runs[-1]._replace(line=run.line) == run
        if not is_of_same_change:
            runs.append(run)
    return tuple(runs)
