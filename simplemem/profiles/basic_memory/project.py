"""A vault as basic-memory sees a project: permalinks, observations and relations of its notes, and answers by the
contract in basic_memory.toml: shapes for JSON, and texts."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypedDict
from urllib.parse import unquote
from uuid import NAMESPACE_URL, uuid5
from zlib import crc32

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.models import Filter, Memory
from simplemem.note.dates import parse_moment
from simplemem.note.names import name_of, path_of
from simplemem.note.note import read_note
from simplemem.profiles.basic_memory.arguments import MAX_HITS
from simplemem.store import BatchResult, Draft, EnhancedStore
from simplemem.tools.session import Session, replaced_and_undo
from simplemem.tools.tool import Caller, Data, Reply

CONTRACT: Final = tomllib.loads(
    Path(__file__).with_name("basic_memory.toml").read_text(encoding="utf-8")
)
ROW_TYPES: Final = ("entity", "observation", "relation")
_SHAPES, _SAID, _LISTS = (CONTRACT[key] for key in ("shapes", "said", "lists"))
_LETTERS: Final = str.maketrans(CONTRACT["letters"])
_ITEM: Final = r"(?:[-*+]|\d{1,9}[.)])[ \t]++"
_OBSERVATION: Final = re.compile(
    _ITEM + r"(?!\[[ xX?!/>~-]?\])(?:\[([^\[\]()\n]++)\][ \t]++(\S.*+)|((?:\S.*[ \t])?#\w.*))"
)
_CONTEXT: Final = re.compile(r"(.*\S)?[ \t]*\([^()\n]*+\)")
_RELATION: Final = re.compile(
    _ITEM
    + r"(?:\"([^\"\n]++)\"|'([^'\n]++)'|([^\s\[]\S*+))[ \t]++\[\[[^\[\]\n]++\]\](?:[ \t]++\([^()\n]*+\))?[ \t]*+$"
)
Result = TypedDict("Result", {"result": Any})


class Relation(NamedTuple):
    type: str
    source: str
    said: str
    target: str | None  # the path it leads to


def said(what: str, facts: Data) -> str:
    """A text of the contract. Lists in it have a text for each row, by its type."""
    shown = {
        key: _listed(f"{what}.{key}", each) if isinstance(each, list) else each
        for key, each in facts.items()
    }
    text: str = _SAID[what]
    return text.format_map(shown)


def _listed(what: str, rows: list[Any]) -> str:
    before, between, after, none = map(str, _LISTS.get(what, ("", "\n", "", "")))
    typed = ((f"{what}.{row['type']}", row) for row in rows if isinstance(row, dict))
    texts = [said(name, row) for name, row in typed if name in _SAID]
    return before.format(n=len(rows)) + between.join(texts) + after if texts else none


def shaped(what: str, value: Any) -> Any:
    """What of a value, and of those in it, an answer shows."""
    if isinstance(value, list):
        return [shaped(what, each) for each in value]
    fields = (
        (_SHAPES.get(f"{what}.{value.get('type')}") or _SHAPES.get(what))
        if isinstance(value, dict)
        else None
    )
    inner = what if what in _SHAPES else f"{what}.{value['type']}" if fields else ""
    return (
        {key: shaped(f"{inner}.{key}", value.get(key)) for key in fields.split()}
        if fields
        else value
    )


@lru_cache(1 << 16)
def slug(path: str) -> str:
    """The permalink of a path: small letters without accents, words joined by hyphens."""
    text = unicodedata.normalize("NFKD", path.removesuffix(".md").translate(_LETTERS))
    text = re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])",
        "-",
        "".join(each for each in text if not unicodedata.combining(each)),
    )
    text = re.sub(r"[^\w./]++|_++", "-", unicodedata.normalize("NFC", text).lower())
    return "/".join(re.sub(r"--++", "-", part).strip("-") for part in text.split("/"))


def is_outside(place: str) -> bool:
    return (
        re.search(r"(?:^|/)\.\.(?:/|$)|^~|^[A-Za-z]:|\\|//", place.removeprefix("memory://"))
        is not None
    )


def observations(text: str) -> Iterator[tuple[str, str]]:
    """The category and the words of each observation of a note."""
    for block in read_note(text.encode()).body.blocks:
        if block.kind == "item" and (
            found := _OBSERVATION.match(text[block.start : block.end].splitlines()[0])
        ):
            content = (found[2] or found[3]).rstrip()
            inside = _CONTEXT.fullmatch(content) if found[1] else None
            if content := inside[1] if inside else content:
                yield (found[1] or "note").strip(), content


class Project:
    """One store, for one call."""

    def __init__(
        self,
        store: EnhancedStore,
        caller: Caller,
        tool: str,
        asked: Any,
        session: Session,
    ) -> None:
        self.tool = tool
        self.store, self.caller, self.asked, made = store, caller, asked, store.extension.services
        self.session = session
        if store.state().state == "indexing":  # what is not there yet is not to be called absent
            store.extension.catch_up()
        if (
            "basic-memory" not in made
        ):  # the prefix of the permalinks that the notes have: those of old have none
            held = (
                (link, slug(path))
                for link, path in store.extension.with_property("permalink").items()
            )
            made["basic-memory"] = next(
                (link.removesuffix(own) for link, own in held if link.endswith(own)), "main/"
            )
        self.prefix: str = made["basic-memory"]
        self.name = self.prefix.rstrip("/") or "main"
        self.id = str(uuid5(NAMESPACE_URL, self.name))
        called = {self.id, self.name.casefold(), "main", store.root.name.casefold()}
        for name in (
            asked.project_id or asked.project or "main",
            *(getattr(asked, "projects", None) or ()),
        ):
            if name.casefold() not in called:
                raise Invalid(said("no_project", {"name": name}))

    def find(self, identifier: str) -> Memory:
        """The note that a permalink, a path, a title or a memory:// address means. NotFound when there is none."""
        wanted = (
            unquote(identifier.strip())
            .removeprefix("memory://")
            .removeprefix("[[")
            .removesuffix("]]")
        )
        if not wanted or is_outside(wanted):
            raise NotFound(identifier)
        for link in (wanted, self.prefix + wanted):
            if held := self.store.list(
                filter=Filter(properties={"permalink": link}), limit=1
            ).items:
                return self.store.read(held[0].name)
        wanted = wanted.removeprefix(self.prefix).removesuffix(".md")
        taken = self.store.extension.exists(path_of(wanted))
        path = (
            None
            if taken
            else {slug(each): each for each in self.store.extension.indexed()}.get(slug(wanted))
        )
        return self.store.read(name_of(path) if path else self.store.resolve(wanted))

    def address(self, path: str) -> str:
        """The permalink that a path has where its note says none."""
        return slug(path) if path.startswith(self.prefix) else self.prefix + slug(path)

    def links(self) -> dict[str, str]:
        """Every permalink with its path."""
        own = {path: link for link, path in self.store.extension.with_property("permalink").items()}
        return {
            own.get(path) or self.address(path): path for path in self.store.extension.indexed()
        }

    def row(self, note: Memory, score: float = 0.0) -> Data:
        """Everything that answers say of a note."""
        content, uuid, folder = (
            note.content.strip(),
            str(uuid5(NAMESPACE_URL, note.path)),
            note.path.rpartition("/"),
        )
        link, kind = (str(note.frontmatter.get(key) or "") for key in ("permalink", "type"))
        times = [
            at.isoformat() if (at := parse_moment(each)) else None
            for each in (note.created or "", note.modified)
        ]
        link, kind = link or self.address(note.path), kind or "note"
        return {
            "type": "entity", "title": note.title, "permalink": link, "entity": link, "file_path": note.path,
            "name": folder[2], "folder": folder[0] or "/", "directory_path": f"/{note.path}", "checksum": note.sha256,
            "frontmatter": dict(note.frontmatter), "note_type": kind, "metadata": {"note_type": kind}, "children": [],
            "content": content, "content_length": len(content), "content_truncated": False, "score": score,
            "content_type": "text/markdown", "created_at": times[0] or times[1], "updated_at": times[1],
            "external_id": uuid, "entity_external_id": uuid, "entity_id": crc32(note.path.encode()),
            "project_id": 1, "project_external_id": self.id,
        }  # fmt: skip

    def rows(self, note: Memory, kinds: Collection[str], score: float = 0.0) -> Iterator[Data]:
        """What of a note is asked for: itself, its observations, its relations."""
        own = self.row(note, score)
        if "entity" in kinds:
            yield own
        for category, content in observations(note.text) if "observation" in kinds else ():
            link = f"{own['permalink']}/observations/{slug(category)}/{slug(content)}"
            tags = re.findall(r"(?<!\S)#([\w/-]++)", content) or None
            more = {
                "category": category,
                "content": content,
                "content_length": len(content),
                "metadata": {"tags": tags},
            }
            yield (
                own
                | more
                | {"type": "observation", "permalink": link, "observation_id": crc32(link.encode())}
            )
        yield from (
            self.relation_row(each)
            for each in (self.relations(note) if "relation" in kinds else ())
        )

    def relation_row(self, each: Relation) -> Data:
        source, target = (
            self.row(self.store.read(name_of(at))) if at else {}
            for at in (each.source, each.target)
        )
        link = (
            f"{source['permalink']}/{slug(each.type)}/{target.get('permalink') or slug(each.said)}"
        )
        ends = {
            "from_title": source["title"],
            "to_title": target.get("title"),
            "content": each.said,
        }
        ends |= {
            "end": target.get("title", "[Missing Link]"),
            "relation_type": each.type,
            "metadata": {},
        }
        for key, of in {
            "entity": "permalink",
            "entity_id": "entity_id",
            "entity_external_id": "external_id",
        }.items():
            ends |= {f"from_{key}": source[of], f"to_{key}": target.get(of)}
        title = f"{source['title']} -> {target['title']}" if target else source["title"]
        more = {
            "type": "relation",
            "title": title,
            "permalink": link,
            "relation_id": crc32(link.encode()),
        }
        return source | ends | more

    def relations(self, note: Memory) -> list[Relation]:
        """What a note leads to: each link once, with the word before it where that is all its line says."""
        body, typed, found = (
            read_note(note.text.encode()).body,
            dict[int, str](),
            set[tuple[str, str]](),
        )
        for block in body.blocks:
            if block.kind == "item" and (
                m := _RELATION.match(note.text[block.start : block.end].splitlines()[0])
            ):
                typed[block.line] = m[1] or m[2] or m[3]
        for link in body.links:
            if link.form == "wiki":
                found.add(
                    (
                        typed.get(link.line, "links_to"),
                        note.text[link.start : link.end].lstrip("!")[2:-2],
                    )
                )
        return [
            Relation(kind, note.path, raw, self._meant(raw, note.path))
            for kind, raw in sorted(found)
        ]

    def _meant(self, raw: str, source: str) -> str | None:
        """Where a link leads: as Obsidian has it, else to a title or permalink."""
        target = raw.split("|")[0].split("#")[0].strip()
        if (path := self.store.extension.resolve_links([(target, source)])[0]) is None:
            with suppress(SimplememError):
                return self.find(target).path
        return path

    def around(self, note: Memory, depth: int, recent: Collection[str]) -> Iterator[Data]:
        """The relations of a note and then the notes they lead to, so many steps away, among those changed of late."""
        relations, seen, frontier = dict[Relation, None](), {note.path: note}, [note]
        for _ in range(depth):
            found = [
                each for one in frontier for each in (*self.relations(one), *self._incoming(one))
            ]
            relations |= {each: None for each in found if each.source in recent}
            ends = dict.fromkeys(
                end for each in relations for end in (each.source, each.target) if end in recent
            )
            frontier = [self.store.read(name_of(end)) for end in ends if end and end not in seen]
            seen |= {each.path: each for each in frontier}
        for row in map(self.relation_row, relations):
            end, start = (
                row["to_title"] or row["content"],
                f"[[{row['from_title']}]] " * (row["file_path"] != note.path),
            )
            names = {
                "from_entity": row["from_title"],
                "to_entity": row["to_title"],
                "to_name": end,
                "start": start,
            }
            yield (
                row
                | names
                | {"title": f"{row['relation_type']}: {end}", "permalink": "", "entity_id": None}
            )
        yield from (
            self.row(each) | {"content": None, "updated_at": None} for each in [*seen.values()][1:]
        )

    def _incoming(self, note: Memory) -> Iterator[Relation]:
        """The relations of other notes that lead to one; by its title as well, which no link of Obsidian says."""
        sources = {
            each.name for each in self.store.backlinks(note.name, limit=MAX_HITS, kinds=["link"])
        }
        if note.title.casefold() != note.name.rpartition("/")[2].casefold():
            sources |= {
                hit.name
                for hit in self.store.search(f'"{note.title}"', mode="text", limit=MAX_HITS).hits
            }
        every = (each for name in sorted(sources) for each in self.relations(self.store.read(name)))
        return (each for each in every if each.target == note.path != each.source)

    def reply(self, what: str, facts: Data, notice: str = "") -> Reply[Result]:
        """An answer: a text of the contract, or the JSON of its shape. A `notice` follows the one, or is its `notice`."""
        facts = {**vars(self.asked), "project": self.name, **facts}
        if self.asked.output_format == "text":
            text = "\n\n".join(filter(None, (said(what, facts), notice)))
            return Reply(text, {"result": text})
        what += (
            "_compact"
            if getattr(self.asked, "compact", False) and f"{what}_compact" in _SHAPES
            else ""
        )
        data = shaped(what if what in _SHAPES else f"failed_{self.tool}", facts)
        data = data.get("items", data)
        if notice and isinstance(data, dict):
            data["notice"] = notice
        return Reply(
            json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str),
            {"result": data},
        )

    def refused(self, what: str, error: str, **facts: Any) -> Invalid:
        return Invalid(
            self.reply(what, {"error": error, "fileCreated": False, "moved": False, **facts}).text
        )

    def rewrite(self, note: Memory, stale: str, make: Callable[[str], str]) -> Memory:
        """Write a note anew, of what it is in that moment; not when it is another than the caller had read."""
        carried = self._rewrite(note, stale, make, self.asked.expected_checksum)
        for written in carried.written:
            self.session.record_step(self.store, written.version)
        return self.store.read(note.name)

    def replace(self, note: Memory, stale: str, make: Callable[[str], str]) -> str:
        """Replace the whole text of a note, unless it is another than the one that the client read in this session.

        Return what was replaced, if the client had read none; else "".
        """
        expected = self.asked.expected_checksum or self.session.known_hash(note.path)
        carried = self._rewrite(note, stale, make, expected)
        replaced = ""
        for written in carried.written:
            self.session.record_hash(written.path, written.sha256 or "")
            if written.changed and expected is None and written.previous_sha256 is not None:
                replaced = replaced_and_undo(
                    self.store, note.name, written.previous_sha256, written.version
                )
        return replaced

    def _rewrite(
        self, note: Memory, stale: str, make: Callable[[str], str], expected: str | None
    ) -> BatchResult:
        def draft() -> Sequence[Draft]:
            now = self.store.read(note.name)
            if expected not in (None, now.sha256):
                row = self.row(now) | {
                    "checksum": None,
                    "action": "conflict",
                    "currentChecksum": now.sha256,
                }
                raise self.refused(stale, "NOTE_REVISION_CONFLICT", **row)
            read_note(self.store.extension.bytes_of(now.path) or b"").check_editable(now.name)
            return [Draft(now.path, make(now.text), now.text)]

        return self.store.extension.change(draft, **self.caller)
