"""Describe what an index contains: counts, tags, and what was read from each note."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from simplemem.index.api import StoredLink
from simplemem.index.engine import Connection, read_integer
from simplemem.index.notes import links

# 524288 is the bit `places.BLOCK`, which marks the ids of blocks.
_COUNTS: Final = {
    "notes": "count(*) FROM notes",
    "files": "count(*) FROM files",
    "words": "coalesce(sum(words), 0) FROM notes",
    "passages": "count(*) FROM places WHERE id & 524288 = 0",
    "blocks": "count(*) FROM places WHERE id & 524288 <> 0",
    "tags": "count(DISTINCT lower(tag)) FROM tags",
    "links": "count(*) FROM links",
    "unresolved_links": "count(*) FROM links WHERE path IS NULL",
}


def counts(db: Connection) -> dict[str, Any]:
    """Return the numbers for `stats` as JSON values: totals by name, and two more entries.

    "hidden" has the number of hidden notes per reason. "problems" lists the notes that must not be
    rewritten, each as its path and the problem.
    """
    hidden = """
        SELECT hidden, count(*) FROM notes
        WHERE hidden IS NOT NULL
        GROUP BY 1 ORDER BY 1
    """
    problems = "SELECT path, problem FROM notes WHERE problem IS NOT NULL ORDER BY path"

    result: dict[str, Any] = {}
    for name, count in _COUNTS.items():
        result[name] = read_integer(db.execute(f"SELECT {count}"))
    result["vectors"] = db.vectors.count()
    result["hidden"] = dict(db.execute(hidden))
    result["problems"] = [
        {"path": path, "problem": problem} for path, problem in db.execute(problems)
    ]
    return result


def tags(db: Connection) -> dict[str, int]:
    """Return the number of notes per tag, the most frequent tag first.

    Hidden notes do not count. Tags that differ only in case are one.
    """
    sql = """
        SELECT min(t.tag), count(DISTINCT t.note_id) AS n
        FROM tags t JOIN notes x ON x.id = t.note_id
        WHERE x.hidden IS NULL
        GROUP BY lower(t.tag)
        ORDER BY n DESC, lower(t.tag)
    """
    return dict(db.execute(sql))


@dataclass
class _NoteContents:
    """What was read from a note, and where its links lead.

    `ambiguous` has the candidates of each link that could mean several files. `links` and
    `backlinks` are paths of notes, `attachments` paths of other files, and `unresolved` targets as
    written.
    """

    title: str
    problem: str | None
    hidden: str | None
    self_links: int = 0
    link_counts: Counter[str] = field(default_factory=Counter)
    ambiguous: dict[str, list[str]] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)
    attachments: set[str] = field(default_factory=set)
    unresolved: set[str] = field(default_factory=set)
    backlinks: set[str] = field(default_factory=set)
    tags: list[str] = field(default_factory=list)
    legacy_tags: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the contents as JSON values, with sets as sorted lists."""
        return {
            "title": self.title,
            "problem": self.problem,
            "hidden": self.hidden,
            "self_links": self.self_links,
            "link_counts": dict(self.link_counts),
            "ambiguous": self.ambiguous,
            "links": sorted(self.links),
            "attachments": sorted(self.attachments),
            "unresolved": sorted(self.unresolved),
            "backlinks": sorted(self.backlinks),
            "tags": self.tags,
            "legacy_tags": self.legacy_tags,
            "aliases": self.aliases,
        }


def inspection(db: Connection) -> dict[str, dict[str, Any]]:
    """Return what was read from every note, hidden ones too, by path, as JSON values.

    That is its title, problem, tags, aliases, and where its links lead: notes, attachments or
    nowhere.
    """
    rows = db.execute("SELECT path, title, problem, hidden FROM notes ORDER BY path")
    contents = {
        path: _NoteContents(title, problem, hidden) for path, title, problem, hidden in rows
    }

    _read_tags(db, contents)
    _read_aliases(db, contents)
    for link in links(db):
        _add_link(contents, link)
    return {path: note.as_dict() for path, note in contents.items()}


def _read_tags(db: Connection, contents: dict[str, _NoteContents]) -> None:
    """Add the tags of all notes to their contents. Those of the old notation are kept apart."""
    sql = """
        SELECT n.path, t.source, t.tag
        FROM tags t JOIN notes n ON n.id = t.note_id
        ORDER BY t.seq
    """
    for path, source, tag in db.execute(sql):
        note = contents[path]
        if source == "legacy":
            note.legacy_tags.append(tag)
        else:
            note.tags.append(tag)


def _read_aliases(db: Connection, contents: dict[str, _NoteContents]) -> None:
    """Add the aliases of all notes to their contents, in the order of each note."""
    sql = """
        SELECT n.path, a.alias
        FROM aliases a JOIN notes n ON n.id = a.note_id
        ORDER BY a.seq
    """
    for path, alias in db.execute(sql):
        contents[path].aliases.append(alias)


def _add_link(contents: dict[str, _NoteContents], link: StoredLink) -> None:
    """Add a link to the contents of its note, and a backlink to those of the note that it leads to.

    A link of a note to itself is only counted. The target of a link is an attachment if it is a
    file that is no note.
    """
    note = contents[link.source]
    path = link.path
    if path is None:
        note.unresolved.add(link.target)
    elif path == link.source:
        note.self_links += 1
    elif path in contents:
        note.links.add(path)
        note.link_counts[path] += 1
        contents[path].backlinks.add(link.source)
    else:
        note.attachments.add(path)
    if link.ambiguous:
        note.ambiguous[link.target] = list(link.ambiguous)
