"""Search, recent notes, and tags.

The results page has the filters as form controls; all of them are in its address. The palette is
the list of results that the script shows on every page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simplemem.note.names import name_of, path_of
from simplemem.note.words import format_count, words_key
from simplemem.web.link_labels import label_links
from simplemem.web.pages.filter_options import read_filter_options
from simplemem.web.pages.page_routes import PageRoutes
from simplemem.web.pages.responses import ask, show_page, show_part
from simplemem.web.tokens import Grant
from simplemem.web.vault_view import VaultView

if TYPE_CHECKING:
    from simplemem.models import Filter, Found, Hit, Listed
    from simplemem.note.name_matching import NamedNote
    from simplemem.store import EnhancedStore

_MAX_HITS: Final = 20
_MAX_NAMES: Final = 5  # names of notes, listed above the hits
_MAX_PALETTE_NAMES: Final = 6
_MAX_PALETTE_HITS: Final = 10
_MAX_RECENT_NOTES: Final = 20
_MAX_TAGGED_NOTES: Final = 200


def routes(page: PageRoutes) -> list[Route]:
    """Return the routes of search, of the parts that the script fetches, and of tags."""
    return [
        page.get("/notes", _show_recent_notes),
        page.get("/search", _show_search),
        page.get("/palette/search", _show_palette),
        page.get("/latest", _show_latest_part),
        page.get("/tags", _show_tags),
        page.get("/tags/{tag:path}", _show_tagged),
    ]


def is_search(request: Request) -> bool:
    """Return whether the address of the home page asks for results: it has a query or a filter.

    A filter counts only beside the field of the query, even if that is empty, because other forms
    of the home page have fields of the same names.
    """
    if "q" not in request.query_params:
        return False
    return _is_asked(request)


def _is_asked(request: Request) -> bool:
    """Return whether an address has a query or a filter."""
    return bool(_query_of(request)) or _filters_of(request).is_set


async def show_results(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the page with the results of a query and the filters of the request."""
    question = _question_of(request)
    values = await _search(view, question)
    options = await ask(view, read_filter_options)
    title = question.query or "Search"
    return show_page(view, grant, "search.html", title, options=options, **values)


async def _show_recent_notes(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the notes that changed last."""
    notes = await _list_recent_notes(view)
    return show_page(view, grant, "notes.html", "Notes", notes=notes)


async def _show_search(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show the results, or the recent notes if there is neither a query nor a filter.

    Returns only the part of the page with them for the script (`part`), which fetches it while the
    user types.
    """
    if request.query_params.get("part"):
        return await _show_results_part(request, view)
    if _is_asked(request):
        return await show_results(request, view, grant)
    return await _show_recent_notes(request, view, grant)


async def _show_results_part(request: Request, view: VaultView) -> Response:
    """Return the part of the page with the results, or with the recent notes."""
    question = _question_of(request)
    if _is_asked(request):
        values = await _search(view, question)
        return show_part(view, "results.html", **values)

    notes = await _list_recent_notes(view)
    return show_part(view, "recent.html", notes=notes)


async def _show_palette(request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the list of the palette.

    It begins with the notes of which a name or a heading equals the query. The other notes whose
    names match follow, then the other hits of the search.
    """
    query = _query_of(request)

    def search(store: EnhancedStore) -> tuple[Sequence[NamedNote], Sequence[Hit]]:
        """Return the notes whose names match, and the hits; without a query, none of them."""
        named_notes = store.find_names(query, limit=_MAX_PALETTE_NAMES)
        if not query:
            return named_notes, ()
        found = store.search(query, limit=_MAX_PALETTE_HITS)
        return named_notes, _with_link_labels(store, found.hits)

    named_notes, hits = await ask(view, search)
    entries = _list_entries(query, named_notes, hits)
    return show_part(view, "palette.html", query=query, entries=entries)


class _PaletteEntry(NamedTuple):
    """A note in the palette. `snippet` is what the search found in it; "" if its name matches."""

    name: str
    title: str
    snippet: str


def _list_entries(
    query: str, named_notes: Sequence[NamedNote], hits: Sequence[Hit]
) -> list[_PaletteEntry]:
    """Return the notes of the palette in their order, each once."""
    wanted = words_key(query)
    equal = []
    others = []
    for note in named_notes:
        entry = _PaletteEntry(name_of(note.path), note.name, "")
        if words_key(note.name) == wanted:
            equal.append(entry)
        else:
            others.append(entry)

    for hit in hits:
        entry = _PaletteEntry(hit.name, hit.title, hit.snippet)
        if _is_called(hit, wanted):
            equal.append(entry)
        else:
            others.append(entry)

    by_name: dict[str, _PaletteEntry] = {}
    for entry in [*equal, *others]:
        by_name.setdefault(entry.name, entry)
    return list(by_name.values())


def _is_called(hit: Hit, key: str) -> bool:
    """Return whether the title of a hit, or the heading above its passage, has a `words_key`."""
    heading = hit.heading.rpartition(" > ")[2]
    return bool(key) and key in (words_key(hit.title), words_key(heading))


async def _show_latest_part(_request: Request, view: VaultView, _grant: Grant) -> Response:
    """Return the list of recent notes, which the script fetches after a change."""
    return show_part(view, "latest.html", notes=await _list_recent_notes(view))


def _query_of(request: Request) -> str:
    """Return the query in an address, or "" if there is none."""
    return request.query_params.get("q", "").strip()


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """The filters of the results page, as a person chose them; "" for one that is not set.

    `since` and `until` are days, and the latter is included.
    """

    folder: str
    tag: str
    type: str
    since: str
    until: str
    author: str

    @property
    def is_set(self) -> bool:
        """Whether there is any filter."""
        return any(asdict(self).values())

    def as_parameters(self) -> dict[str, str]:
        """Return the filters that are set, as parameters of an address."""
        return {name: value for name, value in asdict(self).items() if value}

    def conditions(self) -> Filter:
        """Return the filter of the store. Raises Invalid if the tag cannot be required."""
        from simplemem.models import Filter

        prefix = ""
        folder = self.folder.strip("/")
        if folder:
            prefix = f"{folder}/"
        return Filter.of(
            tags=self.tag.lstrip("#"),
            prefix=prefix,
            type=self.type,
            since=self.since,
            until=self.until,
            author=self.author,
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What a person searches for. With `explain`, the hits say why they are in their order."""

    query: str
    filters: SearchFilters
    explain: bool


def _question_of(request: Request) -> Question:
    """Return what an address asks for."""
    # Only if it is asked for, because it takes about twice the time of the search.
    explain = request.query_params.get("explain") == "1"
    return Question(_query_of(request), _filters_of(request), explain)


def _filters_of(request: Request) -> SearchFilters:
    """Return the filters in an address."""
    params = request.query_params
    values = {}
    for field in fields(SearchFilters):
        values[field.name] = params.get(field.name, "").strip()
    return SearchFilters(**values)


async def _search(view: VaultView, question: Question) -> dict[str, Any]:
    """Search, and return the values that the template `results.html` uses.

    Raises Invalid for a filter that cannot be resolved.
    """
    filters = question.filters

    def search(store: EnhancedStore) -> tuple[Found, Sequence[NamedNote]]:
        """Return what the search finds, and the notes whose names match."""
        found = store.search(
            question.query,
            filter=filters.conditions(),
            limit=_MAX_HITS,
            explain=question.explain,
        )
        found = replace(found, hits=_with_link_labels(store, found.hits))
        if filters.is_set:
            # A name does not say whether its note passes the filters.
            return found, ()
        return found, store.find_names(question.query, limit=_MAX_NAMES)

    found, named_notes = await ask(view, search)
    explain_parameters = {"q": question.query, **filters.as_parameters(), "explain": "1"}
    return {
        "query": question.query,
        "filters": filters,
        "hits": found.hits,
        "explain_query": urlencode(explain_parameters),
        "messages": _describe_results(found),
        "names": _as_links(named_notes),
    }


def _with_link_labels(store: EnhancedStore, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits whose snippets have links to sections as rendered notes show them.

    The notes of such snippets are read.
    """
    paths = [path_of(hit.name) for hit in hits if "#" in hit.snippet]
    texts = {name_of(note.path): note.text for note in store.extension.read(paths)}
    labelled_hits = []
    for hit in hits:
        snippet = label_links(hit.snippet, texts.get(hit.name, ""))
        labelled_hits.append(replace(hit, snippet=snippet))
    return tuple(labelled_hits)


def _as_links(named_notes: Sequence[NamedNote]) -> list[dict[str, str]]:
    """Return the name of each note, and as its title the one of its names that matches."""
    return [{"name": name_of(note.path), "title": note.name} for note in named_notes]


def _describe_results(found: Found) -> list[str]:
    """Return the paragraphs above the hits: what is missing, and what limited the search.

    Returns [] if there are hits and the search was complete.
    """
    missing = []
    if found.absent:
        missing.append(f"No note contains: {', '.join(found.absent)}.")
    if found.not_searched:
        excluded = format_count(found.not_searched, "note")
        missing.append(f"Not looked at: {excluded} excluded from search.")

    messages = [" ".join(missing)]
    if found.hits:
        messages.append(found.notice)
    elif found.index.is_ready:
        messages.append("Nothing found.")
    else:
        messages.append("No answer yet.")

    if not found.index.is_ready:
        messages.append(found.index.reason)
    messages.append(found.degraded)
    return [message for message in messages if message]


async def _list_recent_notes(view: VaultView) -> Sequence[Listed]:
    """Return the 20 notes that changed last, the latest first."""
    page = await ask(view, lambda store: store.list(sort="modified", limit=_MAX_RECENT_NOTES))
    return page.items


async def _show_tags(_request: Request, view: VaultView, grant: Grant) -> Response:
    """Show all tags, the most frequent first."""
    counts = await ask(view, lambda store: store.tags())
    by_name = sorted(counts.items())
    by_frequency = sorted(by_name, key=lambda tag_and_count: tag_and_count[1], reverse=True)
    return show_page(view, grant, "tags.html", "Tags", counts=by_frequency)


async def _show_tagged(request: Request, view: VaultView, grant: Grant) -> Response:
    """Show up to 200 notes with a tag, whatever its value."""
    from simplemem.models import Filter

    tag = request.path_params["tag"]
    with_tag = Filter(tags={tag: ""})
    page = await ask(view, lambda store: store.list(filter=with_tag, limit=_MAX_TAGGED_NOTES))
    return show_page(view, grant, "tagged.html", f"#{tag}", tag=tag, notes=page.items)
