"""The default tools that search: for notes, backlinks, and passages that answer a question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, TypedDict

from pydantic import Field, WithJsonSchema

from simplemem.errors import Hint, Invalid
from simplemem.models import (
    LOOSELY_RELATED,
    NO_WORD_FOUND,
    DatedName,
    Found,
    IndexState,
    Pack,
)
from simplemem.tools import render
from simplemem.tools.arguments import LinkFilterArgs, Mode, Name, Words, about, aliases, clamp
from simplemem.tools.reading import list_memories
from simplemem.tools.session import Session
from simplemem.tools.short import ShortBacklink, ShortHit, shorten_backlink, shorten_hit
from simplemem.tools.tool import Data, Reply, Result, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_KINDS: Final = ["link", "semantic"]
_CHARACTERS_PER_TOKEN: Final = 4
_SPARE_SNIPPET_TOKENS: Final = 10
_MAX_MISSING_WORDS: Final = 12
_SIGNALS: Final = ("words", "phrases", "meaning", "covered", "dated")
_PACK_ITEM_FIELDS: Final = ("name", "line", "score", "tokens")

# Fields of an explanation that an answer has elsewhere, or that a model has no use for.
_HIDDEN_EXPLANATION: Final = frozenset(
    {"words", "formula", "matched_nowhere", "ranked", "filter", "mode", "degraded"}
)

_Limit = Annotated[
    int | None,
    clamp(50),
    WithJsonSchema({"type": "integer", "minimum": 1, "default": 5}),
    Field(ge=1),
]


class SearchAnswer(Result):
    """The hits of a search, and what makes them less than complete."""

    query: str
    mode: str
    hits: Sequence[ShortHit]
    index: IndexState
    explain: Mapping[str, Any] | None = None
    degraded: str = ""
    absent: Sequence[str] = ()
    only_nearest: bool = False
    notice: str = ""
    missing: Sequence[str] = ()
    by_date: Sequence[DatedName] = ()


@tool("Search memories", routes=("GET /search", "POST /search"))
def search_memories(
    store: EnhancedStore,
    session: Session,
    where: LinkFilterArgs,
    query: Annotated[
        str,
        about(
            "question or words; add author:human|agent|any, or archive: for past sessions; "
            "may be empty with filters"
        ),
    ],
    limit: _Limit = None,
    mode: Mode = "hybrid",
    explain: Annotated[bool, about("show how hits were ranked")] = False,
) -> Reply[SearchAnswer]:
    """Search memories by words and meaning. Call this before answering from memory or writing a
    memory. Hits quote text to cite; read_memory returns the rest."""
    if not query.strip() and not any(vars(where).values()):
        hint = Hint("Pass a query or a filter.", list_memories.sentence("list_newest"))
        raise Invalid("the search has no query and no filter", hint=hint)

    result = store.search(query, filter=where.filter(), limit=limit, mode=mode, explain=explain)
    session.record_hits(result.hits)

    snippet_tokens = store.settings.search.snippet_characters // _CHARACTERS_PER_TOKEN
    max_tokens = snippet_tokens + _SPARE_SNIPPET_TOKENS
    answer = SearchAnswer.of(
        result,
        query=render.line(result.query, 1000),
        hits=[shorten_hit(hit, max_tokens) for hit in result.hits],
        explain=_explanation(result.explain) or None,
    )
    return Reply(_search_text(result, answer), answer)


def _search_text(result: Found, answer: SearchAnswer) -> str:
    """Return the text of an answer to a search: its hits, and what makes them incomplete."""
    subject = ""
    if result.query.strip():
        subject = f' for "{render.line(result.query, 80)}"'
    missing_terms = render.missing_terms(result.absent, result.not_searched)
    index_state = render.index_line(result.index, result.degraded)
    state = f"{missing_terms} {index_state}".strip()
    nothing_found = render.nothing_found(subject, result.index)

    if not answer.hits:
        return f"{nothing_found} {state}".strip()

    count = render.format_count(len(answer.hits), "memory", "memories")
    head = f"# {count}{subject}"
    state_below = state
    if result.notice:
        state_below = ""
        head = f"# {nothing_found} {state} Nearest:"
    if result.notice == NO_WORD_FOUND:
        head = f"# {result.notice.removesuffix('.')}{subject}. {state}"
    elif result.notice.startswith(LOOSELY_RELATED):
        what_is_missing = result.notice.removeprefix(LOOSELY_RELATED)
        head = f"# {LOOSELY_RELATED}{subject}{what_is_missing} {state}"

    explained = ""
    if answer.explain:
        explained = f"Explained: {json.dumps(answer.explain, ensure_ascii=False)}"
    items = [_hit_text(number, hit) for number, hit in enumerate(answer.hits, 1)]
    order = _order_text(answer.by_date)
    return render.answer(head, "\n\n".join(items), order, explained, state_below, flagged=True)


def _order_text(notes: Sequence[DatedName]) -> str:
    """Return the hits in order of their days on one line; "" for none."""
    if not notes:
        return ""
    names = [render.name_of(note.as_text()) for note in notes]
    return f"In order of date: {'; '.join(names)}."


def _explanation(explanation: Mapping[str, Any] | None) -> Data:
    """Return the part of an explanation that an answer has, without what is empty; {} for None."""
    if explanation is None:
        return {}
    return {
        key: value for key, value in explanation.items() if value and key not in _HIDDEN_EXPLANATION
    }


def _hit_text(number: int, hit: ShortHit) -> str:
    """Return a hit as an item of a numbered list."""
    name = render.name_of(hit.name)
    title = _title_after_name(hit.name, hit.title)
    snippet = ""
    if hit.snippet:
        snippet = f"> {hit.snippet}"

    rows = [
        f"{number}. **{name}**{title}",
        hit.description,
        snippet,
        _hit_facts(hit),
        _rank_facts(hit.why or {}),
    ]
    return "\n   ".join(filter(None, rows))


def _hit_facts(hit: ShortHit) -> str:
    """Return where a hit is, what kind of note it is of, and when and by whom that was written."""
    place = f"line {hit.line}"
    if hit.heading:
        place = f"{hit.heading}, {place}"
    authors = render.line(" and ".join(hit.authors), 60)
    written = _day(hit.written)

    return render.facts(
        ("", place),
        ("type", _special_type(hit.type)),
        ("", render.tags_line(hit.tags, hit.more_tags)),
        ("created", _day(hit.created)),
        ("modified", _day(hit.modified)),
        ("by", f"{authors} {written}".strip()),
        ("score", f"{hit.score:.2f}"),
        ("sha256", hit.sha256),
        ("contains", ", ".join(hit.flags)),
    )


def _day(moment: str | None) -> str:
    """Return the day of an ISO time; "" for None."""
    return moment[:10] if moment else ""


def _rank_facts(why: Mapping[str, Any]) -> str:
    """Return the numbers behind the rank of a hit on one line.

    `why` has them by name. Returns "" for {}, which a hit has if they were not asked for.
    """
    signals = [signal for signal in _SIGNALS if why.get(signal)]
    numbers = [f"{signal} {why[signal]:.2f}" for signal in signals]
    missing = why.get("missing", ())[:_MAX_MISSING_WORDS]
    return render.facts(
        ("why:", ", ".join(numbers)),
        ("missing", ", ".join(missing)),
    )


def _title_after_name(name: str, title: str) -> str:
    """Return a title with a space before it; "" if it says no more than the name."""
    return "" if title in ("", name) else f" {title}"


def _special_type(note_type: str) -> str:
    """Return a type of note; "" for `memory`, which every note has by default."""
    return "" if note_type == "memory" else note_type


BacklinkList = TypedDict(
    "BacklinkList",
    {
        "items": Sequence[ShortBacklink],
        "index": NotRequired[IndexState],
        "degraded": NotRequired[str],
    },
)


@tool("List backlinks", routes=("GET /backlinks/{name}",))
def get_backlinks(
    store: EnhancedStore,
    name: Name,
    query: Annotated[str | None, about("rank by similarity to this")] = None,
    limit: Annotated[int, clamp(50), Field(ge=1)] = 5,
    kinds: Annotated[Words, about("link: links to it; semantic: same subject")] = _KINDS,
) -> Reply[BacklinkList]:
    """List the memories that link to a memory or share its subject."""
    kinds = [kind.lower() for kind in kinds]
    backlinks = store.backlinks(name, query=query, limit=limit, kinds=kinds)
    items = [shorten_backlink(backlink) for backlink in backlinks]

    index = store.state()
    degraded = store.rerank_trouble if query else ""
    answer = BacklinkList(items=items)
    if index.state != "ready":
        answer["index"] = index
    if degraded:
        answer["degraded"] = degraded

    count = render.format_count(len(items), "memory", "memories")
    head = f"# {count} related to {render.name_of(name)}"
    listing = "\n".join(_backlink_text(item) for item in items)
    return Reply(render.answer(head, listing, render.index_line(index, degraded)), answer)


def _backlink_text(item: ShortBacklink) -> str:
    """Return a backlink as an item of a list, with the places where its note links."""
    reason = "links here" if item.kind == "link" else "same subject"
    name = f"**{render.name_of(item.name)}**{_title_after_name(item.name, item.title)}"
    rows = [f"- {name} ({reason}, line {item.line}, score {item.score:.2f})"]

    if item.snippet:
        rows.append(f"> {item.snippet}")
    rows.extend(f"> line {place['line']}: {place['snippet']}" for place in item.also)
    if item.more_places:
        count = render.format_count(item.more_places, "more place", "more places")
        rows.append(f"and {count}")
    return "\n  ".join(rows)


class ContextPack(Result):
    """The passages about a question. `items` says where each of them stands.

    The first `pinned` items are there whatever the question is.
    """

    query: str
    text: str
    tokens: int
    items: Sequence[Mapping[str, Any]]
    left_out: int
    index: IndexState
    tokenizer: str = "estimate"
    absent: Sequence[str] = ()
    only_nearest: bool = False
    notice: str = ""
    duplicates: int = 0
    degraded: str = ""
    pinned: int = 0
    chronological: bool = False
    flags: Sequence[str] = ()


@tool("Build context", routes=("GET /context", "POST /context"))
def build_context(
    store: EnhancedStore,
    session: Session,
    where: LinkFilterArgs,
    query: str,
    budget_tokens: Annotated[
        int, clamp(20_000), Field(ge=50), aliases("budget_tokens", "budget")
    ] = 1500,
) -> Reply[ContextPack]:
    """Collect the best passages about a question, with sources, within a token budget. Replaces a
    search and many reads."""
    pack = store.context(query, budget_tokens=budget_tokens, filter=where.filter())
    names = [item["name"] for item in pack.items]
    session.record_sources(reversed(names))  # the best is recorded last

    text = render.answer(
        _context_head(pack, render.line(query, 80), budget_tokens),
        pack.text,
        _context_size(pack),
        render.missing_terms(pack.absent, pack.not_searched),
        render.index_line(pack.index, pack.degraded),
    )
    items = [_pack_item(item) for item in pack.items]
    flags = tuple(render.flags_of(pack.text))
    return Reply(text, ContextPack.of(pack, items=items, flags=flags))


def _pack_item(item: Mapping[str, Any]) -> Data:
    """Return the fields of a passage that an answer has."""
    return {field: item[field] for field in _PACK_ITEM_FIELDS}


def _context_size(pack: Pack) -> str:
    """Return how many tokens a pack has, and how many passages are left out of it."""
    if pack.tokenizer == "estimate":
        parts = [f"About {pack.tokens} tokens"]
    else:
        parts = [f"{pack.tokens} tokens by {pack.tokenizer}"]

    if pack.left_out:
        passages = render.format_count(pack.left_out, "more passage", "more passages")
        parts.append(f"{passages} did not fit")
    if pack.duplicates:
        duplicates = render.format_count(pack.duplicates, "duplicate", "duplicates")
        parts.append(f"{duplicates} left out")
    order = " The notes are in order of date." if pack.chronological else ""
    return f"{', '.join(parts)}.{order}"


def _context_head(pack: Pack, subject: str, budget_tokens: int) -> str:
    """Return the first line of a pack: whether the notes answer the question.

    `subject` is the question on one line. `budget_tokens` is named if no passage fits into it.
    """
    if not pack.has_found:
        verdict = _nothing_found(pack, subject, budget_tokens)
        return f"# {verdict} Pinned:" if pack.text else verdict

    if pack.notice == NO_WORD_FOUND:
        return f"# {pack.notice.removesuffix('.')} to {subject}"
    if pack.notice.startswith(LOOSELY_RELATED):
        what_is_missing = pack.notice.removeprefix(LOOSELY_RELATED)
        return f"# {LOOSELY_RELATED} about {subject}{what_is_missing}"
    if pack.notice:
        return f"# Nothing found about {subject}. Nearest:"
    if pack.absent:
        # No note mentions a part of the subject, so none says anything about the whole of it.
        return f"# Passages found for {subject}"
    return f"# What the memories say about {subject}"


def _nothing_found(pack: Pack, subject: str, budget_tokens: int) -> str:
    """Return the sentence for a pack without any passage that was found."""
    if pack.left_out:
        return f"Nothing about {subject} fits into {budget_tokens} tokens."
    if not pack.index.is_ready:
        return f"No answer about {subject} yet."
    return f"Nothing found about {subject}."
