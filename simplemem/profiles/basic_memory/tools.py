"""The tools of the profile, and those that read.

A note without a `permalink` has the one that basic-memory makes of its path; reading does not write it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Final

from simplemem.errors import Invalid, NotFound
from simplemem.models import Filter
from simplemem.note.dates import now
from simplemem.note.names import name_of
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.arguments import (
    MAX_HITS,
    BuildContextArguments,
    ListDirectoryArguments,
    ReadNoteArguments,
    RecentActivityArguments,
    as_list,
    page_slice,
)
from simplemem.profiles.basic_memory.edits import (
    delete_note,
    edit_note,
    move_note,
    write_note,
)
from simplemem.profiles.basic_memory.project import (
    ROW_TYPES,
    Project,
    Result,
    is_outside,
    said,
    slug,
)
from simplemem.profiles.basic_memory.search import search_notes
from simplemem.profiles.basic_memory.timeframe import read_timeframe
from simplemem.tools.arguments import from_json
from simplemem.tools.render import index_line
from simplemem.tools.tool import Data, Reply


@basic_memory_tool("Read Note")
def read_note(project: Project, arguments: ReadNoteArguments) -> Reply[Result]:
    """Read a note by its title, permalink, path or memory:// address; all of it, the lines from start_line to end_line, or with
    include_content=false its checksum alone. Where none is called so, the nearest are named."""
    if arguments.identifier.startswith("/") or is_outside(arguments.identifier):
        return project.reply("outside_identifier", {"error": "SECURITY_VALIDATION_ERROR"})
    try:
        row = project.row(note := project.find(arguments.identifier))
    except NotFound:
        words = re.sub(r"[/_-]", " ", slug(arguments.identifier))
        found = project.store.search(
            words, mode="text", limit=min(MAX_HITS, page_slice(arguments).stop)
        )
        hits = () if found.only_nearest else found.hits[page_slice(arguments)]
        near = [
            project.row(project.store.read(hit.name)) | {"number": k}
            for k, hit in enumerate(hits, 1)
        ]
        missing = {
            "error": "NOTE_NOT_FOUND",
            "message": f"Note not found: {arguments.identifier}",
            "related_results": near,
        }
        notice = index_line(found.index)
        if near or arguments.output_format == "json":
            return project.reply("not_found" if near else "nothing_near", missing, notice)
        return project.reply("nothing_near_yet" if notice else "nothing_near", missing, notice)
    lines, first = note.text.splitlines(), arguments.start_line or 1
    if not arguments.include_content:
        return project.reply("metadata", row)
    project.session.record_read(note)
    if arguments.start_line is None and arguments.end_line is None:
        content = note.text if arguments.include_frontmatter else note.content
        return project.reply("read", row | {"content": content, "text": note.text})
    if arguments.end_line and arguments.end_line < first:
        raise Invalid(f"end_line must be >= start_line, got {arguments.end_line}")
    if first > len(lines):
        raise Invalid(f"start_line {first} is past the end of the document ({len(lines)} lines)")
    last = min(arguments.end_line or len(lines), len(lines))
    shown, onward = lines[first - 1 : last], {}
    if more := last < len(lines):
        onward = {
            "next_start_line": last + 1,
            "next_end_line": min(2 * last - first + 1, len(lines)),
        }
    following = (
        "next: start_line={next_start_line}, end_line={next_end_line}".format_map(onward)
        if more
        else "EOF"
    )
    numbered = [{"type": "line", "number": k, "line": each} for k, each in enumerate(shown, first)]
    row |= {
        "start_line": first,
        "end_line": last,
        "total_lines": len(lines),
        "has_more": more,
        "following": following,
    }
    return project.reply(
        "lines",
        row | {"content": "\n".join(shown), "frontmatter": None, "numbered": numbered} | onward,
    )


@basic_memory_tool("Build Context")
def build_context(project: Project, arguments: BuildContextArguments) -> Reply[Result]:
    """A note of a memory:// address, or all of a pattern such as memory://docs/*, with its observations and relations and the
    notes they lead to, so many steps (depth) away, that changed within the timeframe."""
    wanted, depth, part = (
        arguments.url.strip().removeprefix("memory://").strip("/"),
        str(arguments.depth or 1),
        page_slice(arguments),
    )
    if fault := "//" in wanted or re.search(r'[<>"|?]', wanted) or not wanted:
        what = (
            "double slashes"
            if fault is True and wanted
            else "invalid characters"
            if wanted
            else "nothing"
        )
        raise Invalid(f"Invalid memory URL path: '{arguments.url}' contains {what}")
    if depth not in tuple("12345"):
        raise Invalid(f"depth must be between 1 and 5, got {depth}")
    timeframe = read_timeframe(project.store, arguments.timeframe or "7d")
    since, days = timeframe.since, timeframe.label
    inner, paths = wanted.removeprefix(project.prefix), list[str]()
    if "*" in inner:
        links = sorted(
            (link.removeprefix(project.prefix), path) for link, path in project.links().items()
        )
        paths = [path for link, path in links if fnmatchcase(link, inner)]
    with suppress(NotFound):
        paths = paths or [project.find(wanted).path]
    recent = {each.path for each in project.store.extension.list_all(Filter(since=since))}
    results, near = list[Data](), list[Data]()
    for note in (project.store.read(name_of(path)) for path in paths[part]):
        row, seen = (
            project.row(note),
            [] if arguments.compact else [*project.rows(note, ["observation"])],
        )
        near += (
            around := [*islice(project.around(note, int(depth), recent), arguments.max_related)]
        )
        parts = {
            kind: [each for each in around if each["type"] == kind]
            for kind in ("relation", "entity")
        }
        shown = {
            "primary_result": row,
            "observations": seen,
            "related_results": around,
            "relations": parts["relation"],
        }
        text = {
            "related": parts["entity"],
            "body": "" if arguments.compact else f"\n\n{row['content']}",
            "type": "result",
        }
        results.append(row | shown | text)
    uri = results[0]["permalink"] if len(results) == 1 else project.prefix + inner
    counts = {
        "primary_count": len(results),
        "related_count": len(near),
        "total_results": len(results) + len(near),
    }
    counts |= {"total_relations": sum(each["type"] == "relation" for each in near)}
    counts |= {"total_observations": sum(len(each["observations"]) for each in results)}
    about: Data = {"uri": uri, "types": None, "depth": int(depth), "timeframe": days, **counts}
    about |= {"generated_at": now().isoformat()}
    title = results[0]["title"] if len(results) == 1 else uri
    facts = {
        "results": results,
        "metadata": about,
        "has_more": len(paths) > part.stop,
        "title": title,
        **about,
    }
    return project.reply(
        "context" if results or arguments.output_format == "json" else "no_context", facts
    )


@basic_memory_tool("Recent Activity")
def recent_activity(project: Project, arguments: RecentActivityArguments) -> Reply[Result]:
    """What changed of late, newest first: timeframe is "7d", "24h", "2 days ago", "last week" or a date; type is entity (notes),
    observation or relation, or several."""
    part, kinds = (
        page_slice(arguments),
        {str(each).lower() for each in as_list(from_json(arguments.type)) if each} or {"entity"},
    )
    if unknown := kinds - {*ROW_TYPES}:
        raise Invalid(f"Invalid type: {min(unknown)}. Valid types are: {[*ROW_TYPES]}")
    timeframe = read_timeframe(project.store, arguments.timeframe)
    since, days = timeframe.since, timeframe.label
    notes = project.store.list(filter=Filter(since=since), limit=1000).items
    rows = (row for each in notes for row in project.rows(project.store.read(each.name), kinds))
    taken = [*islice(rows, part.stop + 1)]
    shown, more = taken[part], len(taken) > part.stop
    summary = f"Showing {len(shown)} items (page {arguments.page}). Use page={arguments.page + 1} to see more."
    facts: Data = {kind: [row for row in shown if row["type"] == kind] for kind in ROW_TYPES}
    facts |= {
        "items": shown,
        "days": days,
        "summary": summary if more else f"{len(shown)} items found.",
    }
    return project.reply(
        "recent" if shown or arguments.output_format == "json" else "none_recent", facts
    )


@basic_memory_tool("List Directory")
def list_directory(project: Project, arguments: ListDirectoryArguments) -> Reply[Result]:
    """The notes and folders of a directory, down to a depth of at most 10; file_name_glob (*.md, *meeting*) narrows them."""
    if not 1 <= arguments.depth <= 10:
        raise Invalid(f"depth must be between 1 and 10, got {arguments.depth}")
    place, part, glob = (
        arguments.dir_name.removeprefix("./").strip("/"),
        page_slice(arguments),
        arguments.file_name_glob or "*",
    )
    start, folders, files = f"{place}/" if place else "", set[str](), list[Any]()
    for each in project.store.extension.list_all(Filter(prefix=start)):
        if each.path.startswith(start):
            *above, name = each.path[len(start) :].split("/")
            folders |= {"/".join(above[: k + 1]) for k in range(min(len(above), arguments.depth))}
            files += (
                [(name.casefold(), each)]
                if len(above) < arguments.depth and fnmatchcase(name, glob)
                else []
            )
    nodes: list[Any] = sorted((path.rpartition("/")[2], f"/{start}{path}") for path in folders)
    nodes = [each for each in nodes if fnmatchcase(each[0], glob)]
    by: Any = {"t": lambda each: each[1].title.casefold(), "u": lambda each: each[1].modified}.get(
        (arguments.sort or "n")[0]
    )
    nodes += sorted(
        files, key=by or (lambda each: each[0]), reverse=(arguments.sort or "").endswith("desc")
    )
    rows = [
        {"type": "directory", "name": name, "directory_path": each, "children": []}
        if isinstance(each, str)
        else project.row(project.store.read(each.name)) | {"type": "file"}
        for name, each in nodes[part]
    ]
    parts = {kind: [row for row in rows if row["type"] == kind] for kind in ("directory", "file")}
    words = (("directory", "directories"), ("file", "files"))
    counts = [f"{n} {one if n == 1 else many}" for one, many in words if (n := len(parts[one]))]
    facts = {
        "nodes": rows,
        "directories": parts["directory"],
        "files": parts["file"],
        "total": len(nodes),
    }
    facts |= {
        "has_more": len(nodes) > part.stop,
        "head": "Files in" if arguments.file_name_glob else "Contents of",
    }
    facts |= {"matching": f" matching '{glob}'" if arguments.file_name_glob else ""}
    facts |= {"count": f"{len(rows)} items" + (f" ({', '.join(counts)})" if rows else "")}
    facts |= {
        "onward": said("directory.onward", {**vars(arguments), "next": arguments.page + 1})
        if facts["has_more"]
        else ""
    }
    return project.reply(
        "directory" if nodes or arguments.output_format == "json" else "empty_directory", facts
    )


TOOLS: Final = (
    *(write_note, read_note, edit_note, search_notes, build_context, recent_activity),
    *(list_directory, delete_note, move_note),
)
