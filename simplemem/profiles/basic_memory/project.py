"""A vault as a project of basic-memory.

It has permalinks, and a row for each note, observation and relation. A row is a dictionary with
everything that answers show, under the names of basic-memory's fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypedDict
from urllib.parse import unquote
from uuid import NAMESPACE_URL, uuid5
from zlib import crc32

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.models import Filter, Memory
from simplemem.note.dates import parse_moment
from simplemem.note.names import name_of, path_of
from simplemem.note.note import read_note
from simplemem.profiles.basic_memory import texts
from simplemem.profiles.basic_memory.answers import Answer
from simplemem.profiles.basic_memory.arguments import (
    MAX_HITS,
    ProjectArguments,
    SearchNotesArguments,
)
from simplemem.profiles.basic_memory.note_lines import observations, relation_texts
from simplemem.profiles.basic_memory.permalinks import is_outside, slug
from simplemem.store import BatchResult, Draft, EnhancedStore
from simplemem.tools.session import Session, replaced_and_undo
from simplemem.tools.tool import Caller, Data, Reply

ROW_TYPES: Final = ("entity", "observation", "relation")
_DEFAULT_PREFIX: Final = "main/"
_PREFIX_SERVICE: Final = "basic-memory"
_TAG: Final = re.compile(r"(?<!\S)#([\w/-]++)")

Result = TypedDict("Result", {"result": Any})


@dataclass(frozen=True)
class Relation:
    """A relation of a note.

    Attributes:
        type: Its type, such as `uses`.
        source: The path of the note that states it.
        link_text: The text of its link, without brackets.
        target: The path of the note that the link leads to; None if there is none.
    """

    type: str
    source: str
    link_text: str
    target: str | None


class Project:
    """A vault as a project, for one call of a tool.

    Attributes:
        store: The store of the vault.
        caller: Who calls the tool, for the history.
        session: What the client has read, which calls of the same client share.
        prefix: What permalinks have before the path of their note, such as `main/`, or "".
        name: The name of the project: its prefix without the slash.
        id: The id of the project.
    """

    def __init__(
        self,
        store: EnhancedStore,
        caller: Caller,
        arguments: ProjectArguments,
        session: Session,
    ) -> None:
        """Open the project for a call.

        If the store is still indexing, its index is completed first. Raises Invalid if the
        arguments name another project.
        """
        self.store = store
        self.caller = caller
        self.session = session
        self._output_format = arguments.output_format

        # A note that is not indexed yet must not be reported as missing.
        if store.state().state == "indexing":
            store.extension.catch_up()

        self.prefix = _permalink_prefix(store)
        self.name = self.prefix.rstrip("/") or "main"
        self.id = str(uuid5(NAMESPACE_URL, self.name))
        self._check_names(_named_projects(arguments))

    def _check_names(self, names: Iterable[str]) -> None:
        """Raise Invalid if one of these names or ids is not that of this project."""
        own_names = {self.id, self.name.casefold(), "main", self.store.root.name.casefold()}
        for name in names:
            if name.casefold() not in own_names:
                raise Invalid(texts.no_project(name))

    # --- notes and their permalinks

    def find(self, identifier: str) -> Memory:
        """Return the note with a permalink, path, title or memory:// address.

        They are tried in this order, with or without the prefix, brackets and `.md`. Raises
        NotFound if there is none or the address leads out of the project, and Ambiguous if several
        notes have the title.
        """
        address = unquote(identifier.strip()).removeprefix("memory://")
        link = address.removeprefix("[[").removesuffix("]]")
        if not link or is_outside(link):
            raise NotFound(identifier)

        for permalink in (link, self.prefix + link):
            by_permalink = Filter(properties={"permalink": permalink})
            notes = self.store.list(filter=by_permalink, limit=1).items
            if notes:
                return self.store.read(notes[0].name)

        name = link.removeprefix(self.prefix).removesuffix(".md")
        path = self._find_by_slug(name)
        if path is not None:
            return self.store.read(name_of(path))
        return self.store.read(self.store.resolve(name))

    def _find_by_slug(self, name: str) -> str | None:
        """Return the path of the note whose permalink is that of a name; None if there is none.

        It is also None if a note has the name itself.
        """
        if self.store.extension.exists(path_of(name)):
            return None
        paths = {slug(path): path for path in self.store.extension.indexed()}
        return paths.get(slug(name))

    def address(self, path: str) -> str:
        """Return the permalink that a note at a path has if its properties have none."""
        permalink = slug(path)
        if path.startswith(self.prefix):
            return permalink
        return self.prefix + permalink

    def links(self) -> dict[str, str]:
        """Return the paths of all notes, by permalink.

        A permalink is the one in the note's properties, or else the one of its path.
        """
        own_permalinks = {
            path: permalink
            for permalink, path in self.store.extension.with_property("permalink").items()
        }
        return {
            own_permalinks.get(path) or self.address(path): path
            for path in self.store.extension.indexed()
        }

    # --- rows

    def row(self, note: Memory, score: float = 0.0) -> Data:
        """Return the row of a note. `score` is that of a search, 0 without one.

        A note without a permalink, a type or a creation time gets the default of basic-memory.
        """
        permalink = str(note.frontmatter.get("permalink") or "") or self.address(note.path)
        note_type = str(note.frontmatter.get("type") or "") or "note"
        content = note.content.strip()
        folder, _, file_name = note.path.rpartition("/")
        external_id = str(uuid5(NAMESPACE_URL, note.path))
        updated_at = _iso_time(note.modified)

        return {
            "type": "entity",
            "title": note.title,
            "permalink": permalink,
            "entity": permalink,
            "file_path": note.path,
            "name": file_name,
            "folder": folder or "/",
            "directory_path": f"/{note.path}",
            "checksum": note.sha256,
            "frontmatter": dict(note.frontmatter),
            "note_type": note_type,
            "metadata": {"note_type": note_type},
            "children": [],
            "content": content,
            "content_length": len(content),
            "content_truncated": False,
            "score": score,
            "content_type": "text/markdown",
            "created_at": _iso_time(note.created or "") or updated_at,
            "updated_at": updated_at,
            "external_id": external_id,
            "entity_external_id": external_id,
            "entity_id": crc32(note.path.encode()),
            "project_id": 1,
            "project_external_id": self.id,
        }

    def rows(self, note: Memory, types: Collection[str], score: float = 0.0) -> Iterator[Data]:
        """Yield the rows of these types: the note, its observations, its relations.

        `types` are some of `ROW_TYPES`. `score` is that of the note in a search; relations have 0.
        """
        note_row = self.row(note, score)
        if "entity" in types:
            yield note_row

        if "observation" in types:
            for category, content in observations(note.text):
                yield _observation_row(note_row, category, content)

        if "relation" in types:
            for relation in self.relations(note):
                yield self.relation_row(relation)

    def relation_row(self, relation: Relation) -> Data:
        """Return the row of a relation; some of its fields are those of the note that states it.

        Fields of the target are None if the link leads to no note.
        """
        source = self.row(self.store.read(name_of(relation.source)))
        target: Data = {}
        if relation.target is not None:
            target = self.row(self.store.read(name_of(relation.target)))

        title = source["title"]
        if target:
            title = f"{source['title']} -> {target['title']}"
        end = target.get("permalink") or slug(relation.link_text)
        permalink = f"{source['permalink']}/{slug(relation.type)}/{end}"

        return source | {
            "type": "relation",
            "title": title,
            "permalink": permalink,
            "relation_id": crc32(permalink.encode()),
            "relation_type": relation.type,
            "metadata": {},
            "content": relation.link_text,
            "end": target.get("title", "[Missing Link]"),
            "from_title": source["title"],
            "from_entity": source["permalink"],
            "from_entity_id": source["entity_id"],
            "from_entity_external_id": source["external_id"],
            "to_title": target.get("title"),
            "to_entity": target.get("permalink"),
            "to_entity_id": target.get("entity_id"),
            "to_entity_external_id": target.get("external_id"),
        }

    # --- relations

    def relations(self, note: Memory) -> list[Relation]:
        """Return the relations that a note states, each once, sorted by type and link."""
        relations = []
        for text in relation_texts(note.text):
            target = self._find_target(text.link, source=note.path)
            relations.append(Relation(text.type, note.path, text.link, target))
        return relations

    def _find_target(self, link_text: str, source: str) -> str | None:
        """Return the path that a link leads to: by Obsidian's rules, else by title or permalink.

        `source` is the path of the note with the link. Returns None if it leads to no note, if
        several notes have the title, or if the vault cannot be read.
        """
        target = link_text.split("|")[0].split("#")[0].strip()
        path = self.store.extension.resolve_links([(target, source)])[0]
        if path is not None:
            return path
        try:
            return self.find(target).path
        except SimplememError:
            return None

    def around(self, note: Memory, depth: int, recent: Collection[str]) -> Iterator[Data]:
        """Yield the rows of relations within `depth` steps of a note, then of notes at their ends.

        Only relations that notes of `recent` state are followed, and only to such notes; `recent`
        has paths. Rows of notes have no content and no time of change.
        """
        relations, notes = self._walk(note, depth, recent)

        for relation in relations:
            yield self._context_relation_row(relation, note)
        for related_note in notes:
            yield self.row(related_note) | {"content": None, "updated_at": None}

    def _walk(
        self, note: Memory, depth: int, recent: Collection[str]
    ) -> tuple[Iterable[Relation], Iterable[Memory]]:
        """Return the relations within `depth` steps of a note, and the other notes reached.

        Both are in the order in which they are reached. `recent` is as in `around`.
        """
        relations: dict[Relation, None] = {}
        reached = {note.path: note}
        frontier = [note]

        for _ in range(depth):
            for current in frontier:
                relations |= dict.fromkeys(self._recent_relations(current, recent))

            new_paths = [path for path in _end_paths(relations) if path not in reached]
            frontier = [self.store.read(name_of(path)) for path in new_paths if path in recent]
            reached |= {found.path: found for found in frontier}

        del reached[note.path]
        return relations, reached.values()

    def _recent_relations(self, note: Memory, recent: Collection[str]) -> Iterator[Relation]:
        """Yield the relations from and to a note, if the path of their source is in `recent`."""
        for relation in chain(self.relations(note), self._incoming(note)):
            if relation.source in recent:
                yield relation

    def _context_relation_row(self, relation: Relation, note: Memory) -> Data:
        """Return the row of a relation as the context of a note shows it, with ends by title.

        `start` is the link to the source, or "" if the note itself is the source.
        """
        row = self.relation_row(relation)
        target_name = row["to_title"] or row["content"]
        is_incoming = row["file_path"] != note.path
        return row | {
            "title": f"{row['relation_type']}: {target_name}",
            "permalink": "",
            "entity_id": None,
            "from_entity": row["from_title"],
            "to_entity": row["to_title"],
            "to_name": target_name,
            "start": f"[[{row['from_title']}]] " if is_incoming else "",
        }

    def _incoming(self, note: Memory) -> Iterator[Relation]:
        """Yield the relations of other notes that lead to a note, sorted by the note's name.

        At most 200 notes with a link, and 200 that contain the title, are looked through.
        """
        backlinks = self.store.backlinks(note.name, limit=MAX_HITS, kinds=["link"])
        sources = {link.name for link in backlinks}

        # Obsidian has no links by title, so a search finds the notes that may have one.
        _, _, file_name = note.name.rpartition("/")
        if note.title.casefold() != file_name.casefold():
            found = self.store.search(f'"{note.title}"', mode="text", limit=MAX_HITS)
            sources |= {hit.name for hit in found.hits}

        for name in sorted(sources):
            source = self.store.read(name)
            if source.path == note.path:
                continue
            for relation in self.relations(source):
                if relation.target == note.path:
                    yield relation

    # --- answers

    def reply(
        self, text: str, answer: Answer | Sequence[Answer], notice: str = ""
    ) -> Reply[Result]:
        """Return an answer in the format that the call asks for.

        The text format has only `text`, and JSON only `answer`. `notice` is a sentence that
        basic-memory does not have: it stands below the text, or in the field `notice` of a JSON
        object. A JSON list has no place for it.
        """
        if self._output_format == "text":
            with_notice = "\n\n".join(part for part in (text, notice) if part)
            return Reply(with_notice, {"result": with_notice})

        data: Data | list[Data]
        if isinstance(answer, Answer):
            data = answer.as_data()
            if notice:
                data["notice"] = notice
        else:
            data = [item.as_data() for item in answer]
        dumped = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
        return Reply(dumped, {"result": data})

    def refused(self, text: str, answer: Answer) -> Invalid:
        """Return, and do not raise, the error of a refused call.

        Its message is the answer in the format that the call asks for.
        """
        return Invalid(self.reply(text, answer).text)

    # --- changes

    def rewrite(
        self,
        note: Memory,
        edit: Callable[[str], str],
        *,
        expected: str | None,
        on_conflict: Callable[[Memory], Invalid],
    ) -> Memory:
        """Edit the text of a note as it is at that moment, and return the changed note.

        Raises the error that `on_conflict` returns if the note does not have the `expected`
        checksum, the errors of `edit`, and Unreadable if the note's frontmatter cannot be parsed.
        If the client knew the old text, it counts as knowing the new one.
        """
        result = self._change(note, edit, expected, on_conflict)
        for written in result.written:
            self.session.record_step(self.store, written.version)
        return self.store.read(note.name)

    def replace(
        self,
        note: Memory,
        edit: Callable[[str], str],
        *,
        expected: str | None,
        on_conflict: Callable[[Memory], Invalid],
    ) -> str:
        """Replace the whole text of a note, which the client then counts as knowing.

        Without an `expected` checksum, the text that the client read in this session is expected.
        Returns a sentence on what was replaced if the client had read none, else "". Raises the
        error that `on_conflict` returns for the current note if it has another text, and Unreadable
        if its frontmatter cannot be parsed.
        """
        checksum = expected or self.session.known_hash(note.path)
        result = self._change(note, edit, checksum, on_conflict)

        replaced = ""
        for written in result.written:
            self.session.record_hash(written.path, written.sha256 or "")
            if written.changed and checksum is None and written.previous_sha256 is not None:
                replaced = replaced_and_undo(
                    self.store, note.name, written.previous_sha256, written.version
                )
        return replaced

    def _change(
        self,
        note: Memory,
        edit: Callable[[str], str],
        expected: str | None,
        on_conflict: Callable[[Memory], Invalid],
    ) -> BatchResult:
        """Write the edited text of a note, and return what was written.

        Without an `expected` checksum, any text is edited. Raises the error that `on_conflict`
        returns if the note does not have that checksum, and Unreadable if its frontmatter cannot be
        parsed.
        """

        def draft() -> Sequence[Draft]:
            """Return the edited note. It is called again if the note changes meanwhile."""
            current = self.store.read(note.name)
            if expected is not None and expected != current.sha256:
                raise on_conflict(current)

            stored = self.store.extension.bytes_of(current.path) or b""
            read_note(stored).check_editable(current.name)
            return [Draft(current.path, edit(current.text), current.text)]

        return self.store.extension.change(draft, **self.caller)


def _permalink_prefix(store: EnhancedStore) -> str:
    """Return the prefix of the permalinks in a vault, which is found once per store.

    It is "" if notes have permalinks of old releases, which have no prefix.
    """
    services = store.extension.services
    if _PREFIX_SERVICE not in services:
        services[_PREFIX_SERVICE] = _find_permalink_prefix(store)
    prefix: str = services[_PREFIX_SERVICE]
    return prefix


def _find_permalink_prefix(store: EnhancedStore) -> str:
    """Return what permalinks in the vault have before the path of their note.

    The first permalink that ends with its note's path decides; without one it is "main/".
    """
    for permalink, path in store.extension.with_property("permalink").items():
        own = slug(path)
        if permalink.endswith(own):
            return permalink.removesuffix(own)
    return _DEFAULT_PREFIX


def _named_projects(arguments: ProjectArguments) -> list[str]:
    """Return the names and ids of projects that a call names; "main" if it names none."""
    names = [arguments.project_id or arguments.project or "main"]
    if isinstance(arguments, SearchNotesArguments):
        names += arguments.projects or ()
    return names


def _end_paths(relations: Iterable[Relation]) -> list[str]:
    """Return the paths at both ends of relations, each once, in the order of the relations."""
    paths: dict[str, None] = {}
    for relation in relations:
        paths[relation.source] = None
        if relation.target is not None:
            paths[relation.target] = None
    return list(paths)


def _iso_time(text: str) -> str | None:
    """Return the time that a text states, in ISO 8601 and UTC; None if it states none."""
    moment = parse_moment(text)
    return moment.isoformat() if moment else None


def _observation_row(note_row: Data, category: str, content: str) -> Data:
    """Return the row of an observation; its other fields are those of its note's row."""
    permalink = f"{note_row['permalink']}/observations/{slug(category)}/{slug(content)}"
    return note_row | {
        "type": "observation",
        "permalink": permalink,
        "observation_id": crc32(permalink.encode()),
        "category": category,
        "content": content,
        "content_length": len(content),
        "metadata": {"tags": _TAG.findall(content) or None},
    }
