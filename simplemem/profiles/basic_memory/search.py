"""`search_notes` of basic-memory.

It finds notes, observations and relations by words, links and filters. A search without criteria,
or of an unknown type, is answered with a text. It raises Invalid for a date, a filter or an
operator that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from operator import ge, gt, le, lt
from typing import Any, Final

from simplemem.errors import Invalid
from simplemem.models import Filter, IndexState
from simplemem.profiles.basic_memory import texts
from simplemem.profiles.basic_memory.adapter import basic_memory_tool
from simplemem.profiles.basic_memory.answers import CompactSearchPage, SearchPage
from simplemem.profiles.basic_memory.arguments import (
    MAX_HITS,
    SearchNotesArguments,
    as_list,
    page_slice,
)
from simplemem.profiles.basic_memory.project import ROW_TYPES, Project, Result
from simplemem.profiles.basic_memory.timeframe import read_timeframe
from simplemem.store import falling_scores
from simplemem.tools.arguments import Mode
from simplemem.tools.render import index_line
from simplemem.tools.tool import Data, Reply

_MODES: Final[dict[str, Mode]] = {
    "text": "text",
    "vector": "semantic",
    "semantic": "semantic",
    "hybrid": "hybrid",
}
"""Each search type that ranks notes, and the mode of the store's search for it."""

_SEARCH_TYPES: Final = (*_MODES, "title", "permalink")
_DEFAULT_MIN_SIMILARITY: Final = 0.05
_TAG_OPERATOR: Final = re.compile(r"(?<!\S)tag:(\S+)")
_IGNORED_SYNTAX: Final = re.compile(r"(?<!\S)tag:\S+|\b(?:AND|OR)\b|[()]")
_NOT_OPERATOR: Final = re.compile(r"\bNOT\s+")


@dataclass(frozen=True)
class SearchRequest:
    """One search: the parts of the query, and the filters of its arguments.

    Attributes:
        query: The query as the client wrote it, without blanks around it.
        words: The query in the store's syntax, without tags and Boolean operators.
        search_type: A key of `_MODES`, title or permalink.
        row_types: The types of rows that are returned, of `ROW_TYPES`.
        note_types: The types that a note may have, in lower case; all if it is empty.
        categories: The categories that an observation may have, in lower case; all if it is empty.
        properties: The conditions for properties, by key (`property_matches`).
        filter: The part of the filters that the store can apply.
        min_similarity: The lowest score of a hit.
    """

    query: str
    words: str
    search_type: str
    row_types: frozenset[str]
    note_types: frozenset[str]
    categories: frozenset[str]
    properties: Mapping[str, Any]
    filter: Filter
    min_similarity: float

    @property
    def is_link_search(self) -> bool:
        """Whether the query is a pattern of permalinks."""
        return self.search_type == "permalink" or "://" in self.query

    @property
    def mode(self) -> Mode | None:
        """The mode of the store's search; None if notes are listed, not ranked."""
        if self.is_link_search or not self.words:
            return None
        return _MODES.get(self.search_type)

    @property
    def drops_hits(self) -> bool:
        """Whether some hits of the store's search do not become a row of the answer."""
        return bool(self.properties or self.note_types) or self.row_types != {"entity"}


@dataclass(frozen=True)
class Candidates:
    """The notes that may match: their scores by name, best first, and the state of the index."""

    scores: Mapping[str, float]
    index: IndexState


@basic_memory_tool("Search Notes")
def search_notes(project: Project, arguments: SearchNotesArguments) -> Reply[Result]:
    """Find notes by words and meaning, or by filters alone: "phrases", NOT word, tag:name;
    search_type text, title, permalink (with *), semantic or hybrid. entity_types observation or
    relation, or categories, find lines. metadata_filters: {"priority": {"$gt": 1}}.
    """
    if arguments.valid_at or arguments.valid_overlaps or arguments.time_kind:
        raise Invalid(texts.NO_TIME_SEARCH)
    if not _has_criteria(arguments):
        return _text_reply(texts.NO_CRITERIA)
    unsupported = _unsupported_type(arguments)
    if unsupported:
        query = (arguments.query or "").strip()
        return _text_reply(texts.failed_search(query, unsupported))

    request = _read_request(project, arguments)
    page = page_slice(arguments)
    candidates = _find_candidates(project, request, page.stop)
    rows = _matching_rows(project, request, candidates.scores)
    first_rows = list(islice(rows, page.stop + 1))

    return _answer(project, arguments, request, first_rows, index_line(candidates.index))


def _has_criteria(arguments: SearchNotesArguments) -> bool:
    """Return whether a call has a query or a filter."""
    query = (arguments.query or "").strip()
    criteria = (
        query,
        arguments.metadata_filters,
        arguments.tags,
        arguments.status,
        arguments.note_types,
        arguments.entity_types,
        arguments.categories,
        arguments.after_date,
    )
    return any(criteria)


def _row_types(arguments: SearchNotesArguments) -> frozenset[str]:
    """Return the types of rows that a call searches, in lower case. They are not checked.

    Without types, it is "observation" for a call with categories, else "entity".
    """
    if arguments.entity_types:
        return frozenset(name.lower() for name in arguments.entity_types)
    if arguments.categories:
        return frozenset({"observation"})
    return frozenset({"entity"})


def _unsupported_type(arguments: SearchNotesArguments) -> str:
    """Return why the search type or a row type is not supported; "" if all are."""
    search_type = arguments.search_type or "hybrid"
    row_types = _row_types(arguments)
    if search_type in _SEARCH_TYPES and row_types <= set(ROW_TYPES):
        return ""
    return (
        f"search_type '{arguments.search_type}' or one of entity_types {sorted(row_types)}"
        " is not supported"
    )


def _text_reply(text: str) -> Reply[Result]:
    """Return an answer that is a text in each output format."""
    return Reply(text, {"result": text})


def _read_request(project: Project, arguments: SearchNotesArguments) -> SearchRequest:
    """Return the search that a call asks for.

    A `min_similarity` of 0 or null becomes 0.05. Raises Invalid for a date that cannot be read.
    """
    query = (arguments.query or "").strip()
    tags = [*(arguments.tags or ()), *_TAG_OPERATOR.findall(query)]
    with_exclusions = _NOT_OPERATOR.sub("-", query)

    properties = dict(arguments.metadata_filters or {})
    if arguments.status:
        properties["status"] = arguments.status

    since = ""
    if arguments.after_date:
        since = read_timeframe(project.store, arguments.after_date).since
    filter_ = Filter.of(
        tags=tags or None,
        require_all=True,
        since=since,
        properties=_indexed_properties(properties),
    )

    min_similarity = arguments.min_similarity or _DEFAULT_MIN_SIMILARITY
    return SearchRequest(
        query=query,
        words=_IGNORED_SYNTAX.sub(" ", with_exclusions).strip(" *"),
        search_type=arguments.search_type or "hybrid",
        row_types=_row_types(arguments),
        note_types=_lowered(arguments.note_types),
        categories=_lowered(arguments.categories),
        properties=properties,
        filter=filter_,
        min_similarity=min_similarity,
    )


def _indexed_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the filters that the index can apply: a text for a property of the top level."""
    return {
        key: value for key, value in properties.items() if isinstance(value, str) and "." not in key
    }


def _lowered(names: Iterable[str] | None) -> frozenset[str]:
    """Return names in lower case; none for None."""
    return frozenset(name.lower() for name in names or ())


def _find_candidates(project: Project, request: SearchRequest, row_count: int) -> Candidates:
    """Return the notes that meet the store's filter, ranked if the query has words to rank by.

    `row_count` is the number of rows up to the end of the page. Ranked notes are at most 200, and
    none if no note contains the words. Notes that are not ranked are sorted by name, and their
    score is 0. Raises Invalid for a filter that the store cannot read.
    """
    if request.mode is None:
        index = project.store.state()
        notes = project.store.extension.list_all(request.filter)
        return Candidates({note.name: 0.0 for note in notes}, index)

    limit = MAX_HITS
    if not request.drops_hits:
        limit = min(MAX_HITS, row_count + 1)
    found = project.store.search(
        request.words,
        filter=request.filter,
        limit=limit,
        mode=request.mode,
        own_scores=True,
    )
    if found.only_nearest:
        return Candidates({}, found.index)

    hits = [hit for hit in found.hits if hit.score >= request.min_similarity]
    names = [hit.name for hit in hits]
    scores = falling_scores(hit.score for hit in hits)
    score_by_name = dict(zip(names, scores, strict=True))
    return Candidates(score_by_name, found.index)


def _matching_rows(
    project: Project, request: SearchRequest, scores: Mapping[str, float]
) -> Iterator[Data]:
    """Yield the rows of the candidates that meet all conditions, in the order of the candidates.

    `scores` are the candidates' scores by name. Raises Invalid for an unknown operator.
    """
    link_pattern = request.query.removeprefix("memory://").removeprefix(project.prefix)

    for name, score in scores.items():
        note = project.store.read(name)
        for row in project.rows(note, request.row_types, score):
            link = row["permalink"].removeprefix(project.prefix)
            if request.is_link_search and not fnmatchcase(link, link_pattern):
                continue
            if _row_matches(row, request):
                yield row


def _row_matches(row: Data, request: SearchRequest) -> bool:
    """Return whether a row meets the conditions that the store's search does not check.

    Raises Invalid for an unknown operator.
    """
    if request.search_type == "title" and request.query.lower() not in row["title"].lower():
        return False
    if request.note_types and row["note_type"].lower() not in request.note_types:
        return False
    if request.categories and str(row.get("category")).lower() not in request.categories:
        return False

    # The store found the words in the note; a line of it must contain them itself.
    is_line = row["type"] != "entity"
    if is_line and not request.is_link_search and not _contains_words(row, request.words):
        return False

    return all(
        property_matches(row["frontmatter"], key, condition)
        for key, condition in request.properties.items()
    )


def _contains_words(row: Data, words: str) -> bool:
    """Return whether the title and the text of a row contain all words, in any case.

    True if there are no words.
    """
    text = f"{row['title']} {row['content']}".lower()
    return all(word in text for word in words.lower().split())


def _answer(
    project: Project,
    arguments: SearchNotesArguments,
    request: SearchRequest,
    first_rows: list[Data],
    notice: str,
) -> Reply[Result]:
    """Return the answer with the rows of the page.

    `first_rows` are the rows from the first one to the end of the page, and one more if there are
    more pages. The titles of observations in them are changed. `notice` says that the index is
    incomplete, or is "".
    """
    page = page_slice(arguments)
    rows = first_rows[page]
    has_more = len(first_rows) > page.stop

    for row in rows:
        if row["type"] == "observation":
            row["title"] = f"{row['category']}: {row['content'][:100]}..."

    facts: Data = {
        "results": rows,
        "current_page": arguments.page,
        "page_size": arguments.page_size,
        "total": len(first_rows),
        "total_is_exact": not has_more,
        "has_more": has_more,
    }
    answer = CompactSearchPage.of(facts) if arguments.compact else SearchPage.of(facts)
    if not rows:
        # An incomplete index may lack the note that was not found.
        text = texts.nothing_found(arguments.query, project.name, index_is_complete=not notice)
        return project.reply(text, answer, notice)

    ranked_query = request.query if request.words else ""
    text = texts.search_page(rows, project.name, arguments, ranked_query, has_more=has_more)
    return project.reply(text, answer, notice)


# --- metadata filters


def _is_one_of(value: Any, options: Any) -> bool:
    """Return whether a value is one of the options. A text contains each of its parts.

    Raises TypeError if the options are not a collection, such as a number.
    """
    return value in options


def _is_between(value: Any, bounds: Any) -> bool:
    """Return whether a value is within two bounds; both are included.

    Raises TypeError or LookupError if there are not two bounds of the value's type.
    """
    lowest = bounds[0]
    highest = bounds[1]
    return bool(lowest <= value <= highest)


def _contains_all(value: object, items: object) -> bool:
    """Return whether a list, or a single value, contains all items. They are compared as texts."""
    present = {str(item) for item in as_list(value)}
    return {str(item) for item in as_list(items)} <= present


# Each gets the value of the property and the operand of the condition, and may raise TypeError or
# LookupError for an operand of the wrong form.
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": gt,
    "gte": ge,
    "lt": lt,
    "lte": le,
    "in": _is_one_of,
    "between": _is_between,
    "contains": _contains_all,
}


def property_matches(frontmatter: object, key: str, condition: object) -> bool:
    """Return whether a property meets a condition of a metadata filter.

    `key` is a path such as `author.name`. `condition` is a text that equals the property, a list
    of items that it contains, or operators such as {"$gt": 1}. An operand that cannot be compared
    with the property is not met. Raises Invalid for an unknown operator.
    """
    value = _property_at(frontmatter, key)
    if isinstance(condition, list):
        return _contains_all(value, condition)
    if not isinstance(condition, Mapping):
        return str(value) == str(condition)

    operands = {name.removeprefix("$"): operand for name, operand in condition.items()}
    unsupported = operands.keys() - _OPERATORS.keys() - {"exists"}
    if unsupported:
        raise Invalid(f"Unsupported operator '${min(unsupported)}' in metadata filter for '{key}'")

    exists = value is not None
    if operands.pop("exists", exists) != exists:
        return False
    try:
        return all(
            exists and _OPERATORS[name](value, operand) for name, operand in operands.items()
        )
    except (TypeError, LookupError):
        return False


def _property_at(frontmatter: object, key: str) -> object:
    """Return the property at a path such as `author.name`; None if there is none."""
    value = frontmatter
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
