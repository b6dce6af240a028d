"""Notes as answers list them: texts are cut, and hidden characters in them are flagged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from simplemem.models import Backlink, Hit, Listed
from simplemem.note.words import count_tokens
from simplemem.tools import render
from simplemem.tools.tool import Result

MAX_LIST_TOKENS: Final = 8000  # of a list of notes, or of a history
SHORT_HASH_LENGTH: Final = 12  # digits of a hash: as many as `if_sha256` needs

# With these sizes, five hits have fewer than 1,500 tokens, however long their titles are.
_TITLE_TOKENS: Final = 20
_DESCRIPTION_TOKENS: Final = 36
_TYPE_TOKENS: Final = 10
_TAG_TOKENS: Final = 20
_ALL_TAGS_TOKENS: Final = 30

_BACKLINK_TOKENS: Final = 75
_PLACE_TOKENS: Final = 30
_MAX_PLACES: Final = 4  # of a note that links more than once, beside the first place


class ShortHit(Result, Hit):
    """A hit whose texts are cut. `flags` says which of them contain hidden characters."""

    more_tags: int = 0
    flags: Sequence[str] = ()


class ListedShort(Result):
    """A note in a list. `title` is empty if the name ends with it."""

    name: str
    modified: str
    sha256: str
    title: str = ""
    description: str = ""
    type: str = "memory"
    tags: Sequence[str] = ()
    problem: str | None = None
    flags: Sequence[str] = ()


class ShortBacklink(Result):
    """A note that links to another: its first link, the next ones, and the number of the rest."""

    name: str
    title: str
    kind: str
    snippet: str
    line: int
    score: float
    also: Sequence[Mapping[str, Any]] = ()
    more_places: int = 0
    flags: Sequence[str] = ()


def shorten_hit(hit: Hit, snippet_tokens: int) -> ShortHit:
    """Return a hit with short texts and a hash of 12 digits, for an answer.

    The title, description, type and heading are cut, the snippet to `snippet_tokens`. Tags beyond
    the first are counted in `more_tags`.
    """
    texts = _shorten_texts(hit)
    texts["heading"] = render.brief(hit.heading, _TITLE_TOKENS)
    texts["snippet"] = render.brief(hit.snippet, snippet_tokens)
    tags = _shorten_tags(hit.tags)

    return ShortHit.of(
        hit,
        flags=_flags_of(hit.name, *texts.values(), *tags),
        tags=tags,
        more_tags=len(hit.tags) - len(tags),
        sha256=hit.sha256[:SHORT_HASH_LENGTH],
        **texts,
    )


def shorten_listed(note: Listed) -> ListedShort:
    """Return a note of a list with short texts, its first tags, and a hash of 12 digits.

    The title is "" if the name ends with it.
    """
    texts = _shorten_texts(note)
    if note.title == note.name.rsplit("/", 1)[-1]:
        texts["title"] = ""
    tags = _shorten_tags(note.tags)

    return ListedShort.of(
        note,
        flags=_flags_of(note.name, *texts.values(), *tags),
        tags=tags,
        sha256=note.sha256[:SHORT_HASH_LENGTH],
        **texts,
    )


def shorten_backlink(backlink: Backlink) -> ShortBacklink:
    """Return a backlink with short texts and at most four of its further places.

    The others are counted in `more_places`.
    """
    title = render.brief(backlink.title, _TITLE_TOKENS)
    snippet = render.brief(backlink.snippet, _BACKLINK_TOKENS)
    places = [
        {"line": place.line, "snippet": render.brief(place.snippet, _PLACE_TOKENS)}
        for place in backlink.also[:_MAX_PLACES]
    ]
    snippets = [str(place["snippet"]) for place in places]

    return ShortBacklink.of(
        backlink,
        flags=_flags_of(backlink.name, title, snippet, *snippets),
        title=title,
        snippet=snippet,
        also=tuple(places),
        more_places=len(backlink.also) - len(places),
    )


def unique_names(names: Iterable[str], max_names: int) -> list[str]:
    """Return the first `max_names` names, each once, in their order."""
    return list(dict.fromkeys(names))[:max_names]


def _shorten_texts(note: Hit | Listed) -> dict[str, str]:
    """Return the `title`, `description` and `type` of a note, each cut to fit into an answer."""
    return {
        "title": render.brief(note.title, _TITLE_TOKENS),
        "description": render.brief(note.description, _DESCRIPTION_TOKENS),
        "type": render.brief(note.type, _TYPE_TOKENS),
    }


def _shorten_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the first tags, as many as fit into about 30 tokens, each cut to 20 tokens.

    At least one is returned if there are any.
    """
    sizes = [count_tokens(tag) + 2 for tag in tags]
    fitting = [size for size in accumulate(sizes) if size <= _ALL_TAGS_TOKENS]
    first_tags = tags[: max(1, len(fitting))]
    return tuple(render.brief(tag, _TAG_TOKENS) for tag in first_tags)


def _flags_of(*texts: str) -> tuple[str, ...]:
    """Return what a reader of these texts does not see, such as hidden characters; else ()."""
    return tuple(render.flags_of(*texts))
