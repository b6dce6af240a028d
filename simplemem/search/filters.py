"""Turn a user's filter into the one of the index: names become paths, dates become moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simplemem.errors import Invalid
from simplemem.index.api import IndexFilter
from simplemem.models import Filter
from simplemem.note.dates import local_now, read_when
from simplemem.note.names import compare_key
from simplemem.note.words import well_formed
from simplemem.search.needs import Authors, NameResolver
from simplemem.search.query import Query

# The author in a filter that allows all notes, so that hits name their authors. In any letter case.
ANY_AUTHOR = "any"

# SQLite takes no more than some hundreds of such conditions in one statement.
_MAX_TAGS_AND_PROPERTIES = 100

# Where the `archive:` of a query looks if the settings name no folder.
_DEFAULT_ARCHIVE = ("archive/sessions/",)
_SESSION_TYPE = "session"

_NO_QUERY = Query("", ())


class FilterResolver:
    """Resolves the filters of one vault. Guards no state that changes.

    `archive` are the folders of past sessions in the settings. Searches leave them out unless the
    filter asks for them.
    """

    def __init__(self, names: NameResolver, authors: Authors, archive: Iterable[str]) -> None:
        self._names = names
        self._authors = authors
        stripped = [folder.strip().strip("/") for folder in archive]
        self.archive = tuple(f"{folder}/" for folder in stripped if folder)

        # The filter of a search that asks for none.
        self.default = IndexFilter(archive=self.archive)

    def resolve(self, filter: Filter, query: Query = _NO_QUERY) -> IndexFilter:
        """Return the filter of the index for a user's filter and the filters of a query.

        The query's type, folder and author take precedence. Raises Invalid for too many conditions
        or a text that is no date, and NotFound or Ambiguous for the name of a linked note. If an
        author is named, new changes of the log are copied into the index first.
        """
        _check_size(filter, query)
        author = query.author or well_formed(filter.author).strip()
        if author:
            # The index knows authors only from the changes that were copied into it.
            self._authors.newest()

        note_type = query.type or well_formed(filter.type)
        prefix = (query.prefix or well_formed(filter.prefix)).strip().lstrip("/")
        return IndexFilter(
            tags=_well_formed_items(filter.tags),
            require_all=filter.require_all,
            all_tags=dict(query.tags),
            properties=_well_formed_items(filter.properties),
            type=note_type,
            prefix=prefix,
            since=_moment(filter.since),
            until=_moment(filter.until, end=True),
            link_to=self._path_of(filter.link_to),
            linked_by=self._path_of(filter.linked_by),
            phrases=query.phrases,
            without=query.excluded,
            without_forms=query.excluded_forms,
            author="" if author.casefold() == ANY_AUTHOR else author,
            archive=self._archive_for(note_type, prefix, is_searched=query.archive),
            archived=query.archive,
        )

    def _path_of(self, name: str) -> str:
        """Return the path that a name means; "" for "". Raises NotFound or Ambiguous."""
        return self._names.path_of(name) if name else ""

    def _archive_for(self, note_type: str, prefix: str, *, is_searched: bool) -> tuple[str, ...]:
        """Return the folders of past sessions to search if `is_searched`, else those to leave out.

        No folder is left out if the filter asks for the type "session" or a folder of the archive.
        """
        if is_searched:
            return self.archive or _DEFAULT_ARCHIVE
        if note_type.casefold() == _SESSION_TYPE:
            return ()

        folder_key = compare_key(f"{prefix.rstrip('/')}/")
        if any(folder_key.startswith(compare_key(folder)) for folder in self.archive):
            return ()
        return self.archive


def _check_size(filter: Filter, query: Query) -> None:
    """Raise Invalid if a filter has more conditions than the index can take."""
    count = len(filter.tags) + len(filter.properties) + len(query.tags)
    if count > _MAX_TAGS_AND_PROPERTIES:
        raise Invalid(
            f"a filter takes at most {_MAX_TAGS_AND_PROPERTIES} tags and properties",
            hint="Pass fewer of them.",
        )


def _well_formed_items(items: Mapping[str, str]) -> dict[str, str]:
    """Return a map with lone surrogates replaced in its keys and values."""
    return {well_formed(key): well_formed(value) for key, value in items.items()}


def _moment(text: str, *, end: bool = False) -> str:
    """Return the moment that a date means, or with `end` the end of its period; "" for "".

    Raises Invalid for a text that is no date.
    """
    now = local_now()  # an invalid SIMPLEMEM_NOW is an error, whether or not there is a date
    if not text:
        return ""
    return read_when(text, now, end=end)
