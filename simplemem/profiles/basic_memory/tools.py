"""The profile of basic-memory 0.24: nine of its tools, on a vault as its one project. A note without a `permalink` goes by
the one that server makes of its path, and is not written for it. What they take and say is basic_memory.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice
from operator import ge, gt, le, lt
from typing import Any, Final

from simplemem.errors import Invalid, NotFound
from simplemem.models import Filter
from simplemem.note.dates import now
from simplemem.note.names import name_of
from simplemem.profiles.basic_memory.edits import (
    delete_note,
    edit_note,
    face_tool,
    move_note,
    several,
    write_note,
)
from simplemem.profiles.basic_memory.project import MOST, Project, Result, is_outside, said, slug
from simplemem.store import falling_scores
from simplemem.tools.arguments import from_json
from simplemem.tools.render import index_line
from simplemem.tools.tool import Data, Reply

_KINDS: Final = ("entity", "observation", "relation")
_MODES: Final = {"text": "text", "vector": "semantic", "semantic": "semantic", "hybrid": "hybrid"}
_SPAN: Final = re.compile(r"(\d{1,4}) ?([hdwmy])[a-z]*+(?: ago)?")
_UNITS: Final = {
    "h": ("hour", 1 / 24),
    "d": ("day", 1),
    "w": ("week", 7),
    "m": ("month", 30),
    "y": ("year", 365),
}
_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": gt, "gte": ge, "lt": lt, "lte": le, "in": lambda held, wanted: held in wanted,
    "between": lambda held, wanted: wanted[0] <= held <= wanted[1],
    "contains": lambda held, wanted: {*map(str, several(wanted))} <= {*map(str, several(held))},
}  # fmt: skip


def _since(vault: Project, timeframe: str) -> tuple[str, str]:
    """A stretch of time as the store takes it, and in days where it is a number of something."""
    since, shown = timeframe, "1d" if timeframe == "yesterday" else timeframe
    if found := _SPAN.fullmatch(timeframe.strip().lower()):
        unit, days = _UNITS[found[2]]
        since, shown = f"{found[1]} {unit}s ago", f"{max(1, round(int(found[1]) * days))}d"
    try:
        vault.store.list(filter=Filter(since=since or "?"), limit=1)
    except Invalid:
        raise Invalid(f"Could not parse timeframe: {timeframe}") from None
    return since, shown


def _page(a: Any) -> slice:
    return slice((a.page - 1) * a.page_size, a.page * a.page_size)


def _meets(properties: Any, key: str, wanted: Any) -> bool:
    """Whether a property is what a metadata filter wants of it."""
    for part in key.split("."):
        properties = properties.get(part) if isinstance(properties, Mapping) else None
    if not isinstance(wanted, Mapping):
        return (
            _TESTS["contains"](properties, wanted)
            if isinstance(wanted, list)
            else str(properties) == str(wanted)
        )
    tests = {name.removeprefix("$"): each for name, each in wanted.items()}
    if unknown := tests.keys() - _TESTS.keys() - {"exists"}:
        raise Invalid(f"Unsupported operator '${min(unknown)}' in metadata filter for '{key}'")
    if tests.pop("exists", properties is not None) != (properties is not None):
        return False
    with suppress(TypeError):
        return all(
            properties is not None and _TESTS[name](properties, each)
            for name, each in tests.items()
        )
    return False


@face_tool
def read_note(vault: Project, a: Any) -> Reply[Result]:
    if a.identifier.startswith("/") or is_outside(a.identifier):
        return vault.reply("outside_identifier", {"error": "SECURITY_VALIDATION_ERROR"})
    try:
        row = vault.row(note := vault.find(a.identifier))
    except NotFound:
        words = re.sub(r"[/_-]", " ", slug(a.identifier))
        found = vault.store.search(words, mode="text", limit=min(MOST, _page(a).stop))
        hits = () if found.only_nearest else found.hits[_page(a)]
        near = [
            vault.row(vault.store.read(hit.name)) | {"number": k} for k, hit in enumerate(hits, 1)
        ]
        missing = {
            "error": "NOTE_NOT_FOUND",
            "message": f"Note not found: {a.identifier}",
            "related_results": near,
        }
        notice = index_line(found.index)
        if near or a.output_format == "json":
            return vault.reply("not_found" if near else "nothing_near", missing, notice)
        return vault.reply("nothing_near_yet" if notice else "nothing_near", missing, notice)
    lines, first = note.text.splitlines(), a.start_line or 1
    if not a.include_content:
        return vault.reply("metadata", row)
    vault.session.record_read(note)
    if a.start_line is None and a.end_line is None:
        content = note.text if a.include_frontmatter else note.content
        return vault.reply("read", row | {"content": content, "text": note.text})
    if a.end_line and a.end_line < first:
        raise Invalid(f"end_line must be >= start_line, got {a.end_line}")
    if first > len(lines):
        raise Invalid(f"start_line {first} is past the end of the document ({len(lines)} lines)")
    last = min(a.end_line or len(lines), len(lines))
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
    return vault.reply(
        "lines",
        row | {"content": "\n".join(shown), "frontmatter": None, "numbered": numbered} | onward,
    )


@face_tool
def search_notes(vault: Project, a: Any) -> Reply[Result]:
    query, part = (a.query or "").strip(), _page(a)
    if a.valid_at or a.valid_overlaps or a.time_kind:
        raise Invalid(said("no_time", {}))
    narrowing = (
        a.metadata_filters,
        a.tags,
        a.status,
        a.note_types,
        a.entity_types,
        a.categories,
        a.after_date,
    )
    if not query and not any(narrowing):
        return Reply(said("no_criteria", {}), {"result": said("no_criteria", {})})
    kinds = {
        each.lower() for each in a.entity_types or (["observation"] if a.categories else ["entity"])
    }
    if (a.search_type or "hybrid") not in (*_MODES, "title", "permalink") or kinds - {*_KINDS}:
        why = (
            f"search_type '{a.search_type}' or one of entity_types {sorted(kinds)} is not supported"
        )
        return Reply(text := said("search_failed", {"query": query, "why": why}), {"result": text})
    tags = [*(a.tags or ()), *re.findall(r"(?<!\S)tag:(\S+)", query)]
    properties = (a.metadata_filters or {}) | ({"status": a.status} if a.status else {})
    types, categories = (
        {each.lower() for each in some or ()} for some in (a.note_types, a.categories)
    )
    words = re.sub(
        r"(?<!\S)tag:\S+|\b(?:AND|OR)\b|[()]", " ", re.sub(r"\bNOT\s+", "-", query)
    ).strip(" *")
    since = _since(vault, a.after_date)[0] if a.after_date else ""
    plain = {
        key: str(each)
        for key, each in properties.items()
        if isinstance(each, str) and "." not in key
    }
    narrow = Filter.of(tags=tags or None, require_all=True, since=since, properties=plain)
    index = vault.store.state()
    mode, link = (
        _MODES.get(a.search_type or "hybrid", ""),
        query.removeprefix("memory://").removeprefix(vault.prefix),
    )
    by_link = a.search_type == "permalink" or "://" in query
    if by_link or not mode or not words:
        scores = {each.name: 0.0 for each in vault.store.extension.list_all(narrow)}
    else:
        most = MOST if properties or types or kinds != {"entity"} else min(MOST, part.stop + 1)
        found = vault.store.search(words, filter=narrow, limit=most, mode=mode, own_scores=True)
        index = found.index
        least = a.min_similarity or 0.05
        hits = [hit for hit in found.hits if hit.score >= least and not found.only_nearest]
        shown_scores = falling_scores(hit.score for hit in hits)
        scores = {hit.name: score for hit, score in zip(hits, shown_scores, strict=True)}

    def is_meant(row: Data) -> bool:
        text = f"{row['title']} {row['content']}".lower()
        return (
            (not by_link or fnmatchcase(row["permalink"].removeprefix(vault.prefix), link))
            and (a.search_type != "title" or query.lower() in row["title"].lower())
            and (
                row["type"] == "entity"
                or by_link
                or all(word in text for word in words.lower().split())
            )
            and (not types or row["note_type"].lower() in types)
            and (not categories or str(row.get("category")).lower() in categories)
            and all(_meets(row["frontmatter"], key, each) for key, each in properties.items())
        )

    every = (
        row for name in scores for row in vault.rows(vault.store.read(name), kinds, scores[name])
    )
    taken = [*islice(filter(is_meant, every), part.stop + 1)]
    shown, more = taken[part], len(taken) > part.stop
    for row in shown:
        row["title"] = (
            f"{row['category']}: {row['content'][:100]}..."
            if row["type"] == "observation"
            else row["title"]
        )
        row["project"] = vault.name
    facts: Data = {"results": shown, "current_page": a.page, "total": len(taken)}
    facts |= {"total_is_exact": not more, "has_more": more}
    facts |= {
        "about": f": {query}" if words else "",
        "scope": "all projects" if a.search_all_projects else vault.name,
    }
    facts |= {
        "count": f"{len(shown)} result{'s'[: len(shown) > 1]}",
        "more": " | more available" if more else "",
    }
    notice = index_line(index)
    if shown or a.output_format == "json":
        return vault.reply("found", facts, notice)
    # What is missing from the index may hold what was not found.
    return vault.reply("none_yet" if notice else "none_found", facts, notice)


@face_tool
def build_context(vault: Project, a: Any) -> Reply[Result]:
    wanted, depth, part = (
        a.url.strip().removeprefix("memory://").strip("/"),
        str(a.depth or 1),
        _page(a),
    )
    if fault := "//" in wanted or re.search(r'[<>"|?]', wanted) or not wanted:
        what = (
            "double slashes"
            if fault is True and wanted
            else "invalid characters"
            if wanted
            else "nothing"
        )
        raise Invalid(f"Invalid memory URL path: '{a.url}' contains {what}")
    if depth not in tuple("12345"):
        raise Invalid(f"depth must be between 1 and 5, got {depth}")
    since, days = _since(vault, a.timeframe or "7d")
    inner, paths = wanted.removeprefix(vault.prefix), list[str]()
    if "*" in inner:
        links = sorted(
            (link.removeprefix(vault.prefix), path) for link, path in vault.links().items()
        )
        paths = [path for link, path in links if fnmatchcase(link, inner)]
    with suppress(NotFound):
        paths = paths or [vault.find(wanted).path]
    recent = {each.path for each in vault.store.extension.list_all(Filter(since=since))}
    results, near = list[Data](), list[Data]()
    for note in (vault.store.read(name_of(path)) for path in paths[part]):
        row, seen = vault.row(note), [] if a.compact else [*vault.rows(note, ["observation"])]
        near += (around := [*islice(vault.around(note, int(depth), recent), a.max_related)])
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
            "body": "" if a.compact else f"\n\n{row['content']}",
            "type": "result",
        }
        results.append(row | shown | text)
    uri = results[0]["permalink"] if len(results) == 1 else vault.prefix + inner
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
    return vault.reply("context" if results or a.output_format == "json" else "no_context", facts)


@face_tool
def recent_activity(vault: Project, a: Any) -> Reply[Result]:
    part, kinds = (
        _page(a),
        {str(each).lower() for each in several(from_json(a.type)) if each} or {"entity"},
    )
    if unknown := kinds - {*_KINDS}:
        raise Invalid(f"Invalid type: {min(unknown)}. Valid types are: {[*_KINDS]}")
    since, days = _since(vault, a.timeframe)
    notes = vault.store.list(filter=Filter(since=since), limit=1000).items
    rows = (row for each in notes for row in vault.rows(vault.store.read(each.name), kinds))
    taken = [*islice(rows, part.stop + 1)]
    shown, more = taken[part], len(taken) > part.stop
    summary = f"Showing {len(shown)} items (page {a.page}). Use page={a.page + 1} to see more."
    facts: Data = {kind: [row for row in shown if row["type"] == kind] for kind in _KINDS}
    facts |= {
        "items": shown,
        "days": days,
        "summary": summary if more else f"{len(shown)} items found.",
    }
    return vault.reply("recent" if shown or a.output_format == "json" else "none_recent", facts)


@face_tool
def list_directory(vault: Project, a: Any) -> Reply[Result]:
    if not 1 <= a.depth <= 10:
        raise Invalid(f"depth must be between 1 and 10, got {a.depth}")
    place, part, glob = a.dir_name.removeprefix("./").strip("/"), _page(a), a.file_name_glob or "*"
    start, folders, files = f"{place}/" if place else "", set[str](), list[Any]()
    for each in vault.store.extension.list_all(Filter(prefix=start)):
        if each.path.startswith(start):
            *above, name = each.path[len(start) :].split("/")
            folders |= {"/".join(above[: k + 1]) for k in range(min(len(above), a.depth))}
            files += (
                [(name.casefold(), each)]
                if len(above) < a.depth and fnmatchcase(name, glob)
                else []
            )
    nodes: list[Any] = sorted((path.rpartition("/")[2], f"/{start}{path}") for path in folders)
    nodes = [each for each in nodes if fnmatchcase(each[0], glob)]
    by: Any = {"t": lambda each: each[1].title.casefold(), "u": lambda each: each[1].modified}.get(
        (a.sort or "n")[0]
    )
    nodes += sorted(
        files, key=by or (lambda each: each[0]), reverse=(a.sort or "").endswith("desc")
    )
    rows = [
        {"type": "directory", "name": name, "directory_path": each, "children": []}
        if isinstance(each, str)
        else vault.row(vault.store.read(each.name)) | {"type": "file"}
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
        "head": "Files in" if a.file_name_glob else "Contents of",
    }
    facts |= {"matching": f" matching '{glob}'" if a.file_name_glob else ""}
    facts |= {"count": f"{len(rows)} items" + (f" ({', '.join(counts)})" if rows else "")}
    facts |= {
        "onward": said("directory.onward", {**vars(a), "next": a.page + 1})
        if facts["has_more"]
        else ""
    }
    return vault.reply(
        "directory" if nodes or a.output_format == "json" else "empty_directory", facts
    )


TOOLS: Final = (
    *(write_note, read_note, edit_note, search_notes, build_context, recent_activity),
    *(list_directory, delete_note, move_note),
)
