"""`build_context` of basic-memory: notes with their observations, relations, and related notes.

It raises Invalid for an address, a depth or a timeframe that it cannot read, and Ambiguous if
several notes have the title in the address. It does not count as reading a note.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

from simplemem.errors import Invalid, NotFound
from simplemem.models import Filter, Memory
from simplemem.note.dates import now
from simplemem.note.names import name_of
from simplemem.profiles.basic_memory import texts
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.answers import (
    CompactContext,
    CompactContextResult,
    Context,
    ContextMetadata,
    ContextResult,
)
from simplemem.profiles.basic_memory.arguments import BuildContextArguments, page_slice
from simplemem.profiles.basic_memory.project import Project, Result
from simplemem.profiles.basic_memory.timeframe import read_timeframe
from simplemem.tools.tool import Data, Reply

_INVALID_CHARACTERS: Final = re.compile(r'[<>"|?]')
_DEFAULT_TIMEFRAME: Final = "7d"
_MAX_DEPTH: Final = 5


@dataclass(frozen=True)
class NoteContext:
    """A note as a row, and the rows of what it is related to.

    Attributes:
        row: The note.
        observations: Its observations; [] in the compact form.
        related: Its relations, then the notes at their ends.
    """

    row: Data
    observations: list[Data]
    related: list[Data]


@basic_memory_tool("Build Context")
def build_context(project: Project, arguments: BuildContextArguments) -> Reply[Result]:
    """A note of a memory:// address, or all of a pattern such as memory://docs/*, with its
    observations and relations and the notes they lead to, so many steps (depth) away, that
    changed within the timeframe.
    """
    address = _read_address(arguments)
    depth = _read_depth(arguments)
    timeframe = read_timeframe(project.store, arguments.timeframe or _DEFAULT_TIMEFRAME)

    page = page_slice(arguments)
    paths = _find_paths(project, address)
    changed = project.store.extension.list_all(Filter(since=timeframe.since))
    recent = {note.path for note in changed}
    contexts = []
    for path in paths[page]:
        note = project.store.read(name_of(path))
        contexts.append(_note_context(project, arguments, note, depth, recent))

    uri = project.prefix + address.removeprefix(project.prefix)
    title = uri
    if len(contexts) == 1:
        uri = contexts[0].row["permalink"]
        title = contexts[0].row["title"]
    metadata = _metadata(contexts, uri, depth, timeframe.label)
    answer = _answer(arguments, contexts, metadata, has_more=len(paths) > page.stop)
    if not contexts:
        return project.reply(texts.no_context(uri, project.name), answer)

    parts = []
    for context in contexts:
        part = texts.context_result(
            context.row,
            context.observations,
            context.related,
            compact=arguments.compact,
        )
        parts.append(part)
    return project.reply(texts.context(title, parts, metadata, project.name), answer)


def _read_address(arguments: BuildContextArguments) -> str:
    """Return the permalink or pattern in a call's `url`, without "memory://" and outer slashes.

    Raises Invalid if nothing is left, or if it has double slashes or characters that no permalink
    has.
    """
    address = arguments.url.strip().removeprefix("memory://").strip("/")
    fault = ""
    if not address:
        fault = "nothing"
    elif "//" in address:
        fault = "double slashes"
    elif _INVALID_CHARACTERS.search(address):
        fault = "invalid characters"
    if fault:
        raise Invalid(f"Invalid memory URL path: '{arguments.url}' contains {fault}")
    return address


def _read_depth(arguments: BuildContextArguments) -> int:
    """Return the depth of a call, which may be a text; 1 for null, 0 and "".

    Raises Invalid if it is not a whole number from 1 to 5.
    """
    depth = str(arguments.depth or 1)
    if depth not in {str(number) for number in range(1, _MAX_DEPTH + 1)}:
        raise Invalid(f"depth must be between 1 and {_MAX_DEPTH}, got {depth}")
    return int(depth)


def _find_paths(project: Project, address: str) -> list[str]:
    """Return the paths of the notes at an address; [] if there are none.

    These are all notes whose permalinks match a pattern with `*`, sorted by permalink, or a single
    note. If no note matches, a note whose title is the pattern is returned. Raises Ambiguous if
    several notes have the title.
    """
    pattern = address.removeprefix(project.prefix)
    if "*" in pattern:
        links = sorted(
            (permalink.removeprefix(project.prefix), path)
            for permalink, path in project.links().items()
        )
        paths = [path for permalink, path in links if fnmatchcase(permalink, pattern)]
        if paths:
            return paths

    try:
        return [project.find(address).path]
    except NotFound:
        return []


def _note_context(
    project: Project,
    arguments: BuildContextArguments,
    note: Memory,
    depth: int,
    recent: Collection[str],
) -> NoteContext:
    """Return a note with its observations and, within `depth` steps, what it is related to.

    Only notes whose paths are in `recent` count as related. At most `max_related` relations and
    notes are returned. The compact form has no observations.
    """
    observations: list[Data] = []
    if not arguments.compact:
        observations = list(project.rows(note, ["observation"]))
    related = list(islice(project.around(note, depth, recent), arguments.max_related))
    return NoteContext(project.row(note), observations, related)


def _metadata(contexts: list[NoteContext], uri: str, depth: int, timeframe: str) -> ContextMetadata:
    """Return how much an answer contains, and the `uri`, depth and timeframe of the call."""
    related = [row for context in contexts for row in context.related]
    relations = [row for row in related if row["type"] == "relation"]
    return ContextMetadata(
        uri=uri,
        depth=depth,
        timeframe=timeframe,
        primary_count=len(contexts),
        related_count=len(related),
        total_results=len(contexts) + len(related),
        total_relations=len(relations),
        total_observations=sum(len(context.observations) for context in contexts),
        generated_at=now().isoformat(),
    )


def _answer(
    arguments: BuildContextArguments,
    contexts: list[NoteContext],
    metadata: ContextMetadata,
    *,
    has_more: bool,
) -> Context | CompactContext:
    """Return the JSON answer, in the compact form if the call asks for it.

    `has_more` says that there are more pages.
    """
    if arguments.compact:
        compact_results = [
            CompactContextResult.of(
                {"primary_result": context.row, "related_results": context.related}
            )
            for context in contexts
        ]
        return CompactContext(
            results=compact_results,
            metadata=metadata,
            page=arguments.page,
            page_size=arguments.page_size,
            has_more=has_more,
        )

    results = [
        ContextResult.of(
            {
                "primary_result": context.row,
                "observations": context.observations,
                "related_results": context.related,
            }
        )
        for context in contexts
    ]
    return Context(
        results=results,
        metadata=metadata,
        page=arguments.page,
        page_size=arguments.page_size,
        has_more=has_more,
    )
