"""Finding: search_memories, get_backlinks, build_context. An answer that is less than whole says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AliasChoices, Field

from simplemem.errors import Invalid
from simplemem.faces import render
from simplemem.faces.arguments import Arguments, Mode, Name, Words, at_most
from simplemem.faces.narrowing import LinkNarrowing
from simplemem.faces.schema import COUNT, INDEX, MAP, MAYBE_TEXT, NUMBER, TEXT, TEXTS, record, several
from simplemem.faces.tool import Call, Reply, Tool

if TYPE_CHECKING:
    from simplemem.memory import Backlink, Found, Hit, IndexState

# Tokens of a hit, so that five of them stay below 1,500 however long titles and descriptions are.
_TITLE, _DESCRIPTION, _HEADING, _TAGS = 20, 36, 20, 30
_PARTS = ("words", "phrases", "meaning", "covered", "dated")
_WORDS_TOLD = 12  # of a question, when it is explained
# In an explanation, by other fields of the answer.
_SAID_ELSEWHERE = {"words", "formula", "matched_nowhere", "legs", "ranked", "filter", "mode", "degraded"}


# --- search_memories


class SearchArguments(LinkNarrowing):
    query: str = Field(default="", description="a question or words; author:human|agent|any; empty: the newest")
    limit: Annotated[int, at_most(50)] = Field(default=5, ge=1)
    mode: Mode = "hybrid"
    explain: bool = Field(default=False, description="the numbers behind each rank")


def search_memories(call: Call, asked: SearchArguments) -> Reply:
    found = call.store.search(
        asked.query,
        filter=asked.filter(),
        limit=asked.limit if "limit" in asked.model_fields_set else None,
        mode=asked.mode,
        explain=asked.explain,
    )
    snippet_tokens = call.store.settings.search.snippet_characters // 4 + 10
    hits = [_briefly(hit, snippet_tokens) for hit in found.hits]
    data: dict[str, Any] = {
        "query": render.line(found.query, 1000),
        "mode": found.mode,
        "hits": [_shown(*hit) for hit in hits],
        "index": found.index.as_dict(),
    }
    if found.degraded:
        data["degraded"] = found.degraded
    if found.explain is not None:
        data["explain"] = {key: value for key, value in found.explain.items() if value and key not in _SAID_ELSEWHERE}
    return Reply(_found_text(found, hits), data)


def _briefly(hit: Hit, snippet_tokens: int) -> tuple[Hit, int]:
    """A hit of a size of which a model can read several, and how many tags it has beside those shown;
    read_memory has the whole."""
    tags = render.first_tags(hit.tags, _TAGS)
    short = replace(
        hit,
        title=render.brief(hit.title, _TITLE),
        description=render.brief(hit.description, _DESCRIPTION),
        type=render.brief(hit.type, 10),
        authors=tuple(render.brief(name, 20) for name in hit.authors),
        snippet=render.brief(hit.snippet, snippet_tokens),
        heading=render.brief(hit.heading, _HEADING),
        tags=tags,
    )
    return short, len(hit.tags) - len(tags)


def _shown(hit: Hit, more_tags: int) -> dict[str, Any]:
    shown = {key: value for key, value in hit.as_dict().items() if key != "why" or value is not None}
    if flags := _flags(hit):
        shown["flags"] = flags
    return shown | {"more_tags": more_tags} if more_tags else shown


def _flags(hit: Hit) -> list[str]:
    """What of a hit is not seen as it is shown."""
    return render.flags_of(hit.name, hit.title, hit.description, hit.snippet, hit.heading, *hit.tags)


def _found_text(found: Found, shown: Sequence[tuple[Hit, int]]) -> str:
    asked = f' for "{render.line(found.query, 80)}"' if found.query.strip() else ""
    said = render.index_line(found.index, found.degraded)
    if not shown:
        nothing = f"Nothing found{asked}, in {render.counted(found.index.notes, 'memory', 'memories')}."
        return f"{nothing} {said}".strip()
    hits = "\n\n".join(_hit_text(number, *hit) for number, hit in enumerate(shown, 1))
    head = f"# {render.counted(len(shown), 'memory', 'memories')}{asked}"
    explained = _explained(found.explain) if found.explain else ""
    return render.answer(head, hits, explained, said, flagged=True)


def _explained(told: Mapping[str, Any]) -> str:
    """How the search was carried out, in a line or two; the numbers of every leg are in the data."""
    weights = " + ".join(f"{weight:g} × {part}" for part, weight in told["weights"].items() if weight)
    counts = [f"{word} in {count}" for word, count in list(told["notes_with"].items())[:_WORDS_TOLD]]
    removed = (f"{each['filter']} {each['value']} removed {each['removed']}" for each in told["filters"])
    facts = render.facts(
        ("score =", weights),
        ("memories with", ", ".join(counts)),
        ("filters:", "; ".join(removed)),
        ("", f"{told['notes_after_filter']} of {told['notes']} memories searched"),
        (
            "left out:",
            "; ".join(f"{count} {reason}" for reason, count in told["not_searched"].get("hidden", {}).items()),
        ),
    )
    return f"Explained: {facts}"


def _why_line(why: Mapping[str, Any]) -> str:
    legs = ", ".join(f"{leg} #{standing['rank']}" for leg, standing in why["legs"].items())
    parts = ", ".join(f"{part} {why[part]:.2f}" for part in _PARTS if why.get(part))
    lacking = ", ".join(why["missing"][:_WORDS_TOLD])
    return render.facts(("why:", parts), ("", legs), ("lacks", lacking))


def _hit_text(number: int, hit: Hit, more_tags: int) -> str:
    title = f" {hit.title}" if hit.title and hit.title != hit.name else ""
    facts = render.facts(
        ("", f"{hit.heading}, line {hit.line}" if hit.heading else f"line {hit.line}"),
        ("type", hit.type if hit.type != "memory" else ""),
        ("", render.tags_line(hit.tags, more_tags)),
        ("created", render.day(hit.created)),
        ("modified", render.day(hit.modified)),
        ("by", " ".join(filter(None, (render.line(" and ".join(hit.authors), 60), render.day(hit.written))))),
        ("score", f"{hit.score:.2f}"),
        ("sha256", render.short(hit.sha256)),
        ("holds", ", ".join(_flags(hit))),
    )
    rows = [
        f"{number}. **{render.name_of(hit.name)}**{title}",
        hit.description,
        f"> {hit.snippet}" if hit.snippet else "",
        facts,
        _why_line(hit.why) if hit.why else "",
    ]
    return "\n   ".join(row for row in rows if row)


SEARCH = Tool(
    "search_memories",
    "Search memories",
    "Search the memories by words and by meaning. Do this before answering from memory and before writing "
    "a new memory. Hits carry what is needed to answer and to cite; read_memory has the rest.",
    SearchArguments,
    search_memories,
    record(
        ("explain", "degraded"),
        query=TEXT,
        mode=TEXT,
        hits=several(
            record(
                ("why", "more_tags", "authors", "written", "flags"),
                flags=TEXTS,
                name=TEXT,
                title=TEXT,
                description=TEXT,
                type=TEXT,
                score=NUMBER,
                snippet=TEXT,
                heading=TEXT,
                line=COUNT,
                tags=TEXTS,
                more_tags=COUNT,
                created=MAYBE_TEXT,
                modified=MAYBE_TEXT,
                sha256=TEXT,
                why=MAP,
                authors=TEXTS,
                written=TEXT,
            )
        ),
        index=INDEX,
        explain=MAP,
        degraded=TEXT,
    ),
)


# --- get_backlinks


class BacklinkArguments(Arguments):
    name: Name
    query: str | None = Field(default=None, description="rank by nearness to this")
    limit: Annotated[int, at_most(50)] = Field(default=5, ge=1)
    kinds: Words = Field(
        default=["link", "semantic"], description='"link": it links here; "semantic": it is about the same'
    )

    shown_types: ClassVar[dict[str, str]] = {"kinds": "array"}


def get_backlinks(call: Call, asked: BacklinkArguments) -> Reply:
    kinds = [kind.lower() for kind in asked.kinds]
    if strange := [kind for kind in kinds if kind not in ("link", "semantic")]:
        raise Invalid(
            f"There is no kind of backlink called {strange[0][:40]!r}.",
            hint='There are "link" and "semantic".',
        )
    items = call.store.backlinks(asked.name, query=asked.query, limit=asked.limit, kinds=kinds)
    items = tuple(
        replace(item, title=render.brief(item.title, _TITLE), snippet=render.brief(item.snippet, 75)) for item in items
    )
    index = call.store.state()
    data = {"items": [_backlink(item) for item in items], "index": index.as_dict()}
    return Reply(_backlinks_text(asked.name, items, index), data)


def _backlink(item: Backlink) -> dict[str, Any]:
    flags = render.flags_of(item.name, item.title, item.snippet)
    return item.as_dict() | ({"flags": flags} if flags else {})


def _backlinks_text(name: str, items: Sequence[Backlink], index: IndexState) -> str:
    to = render.name_of(name)
    head = f"# {render.counted(len({item.name for item in items}), 'memory leads', 'memories lead')} to {to}"
    lines = "\n".join(_backlink_line(item) for item in items)
    return render.answer(head, lines, render.index_line(index))


def _backlink_line(item: Backlink) -> str:
    kind = "links here" if item.kind == "link" else "about the same"
    title = f" {item.title}" if item.title and item.title != item.name else ""
    snippet = f"\n  > {item.snippet}" if item.snippet else ""
    return f"- **{render.name_of(item.name)}**{title} ({kind}, line {item.line}, {item.score:.2f}){snippet}"


BACKLINKS = Tool(
    "get_backlinks",
    "Backlinks of a memory",
    "What leads to a memory: memories that link to it, and memories about the same thing.",
    BacklinkArguments,
    get_backlinks,
    record(
        items=several(
            record(
                ("flags",),
                flags=TEXTS,
                name=TEXT,
                title=TEXT,
                kind=TEXT,
                form=TEXT,
                snippet=TEXT,
                line=COUNT,
                score=NUMBER,
            )
        ),
        index=INDEX,
    ),
)


# --- build_context


class ContextArguments(LinkNarrowing):
    query: str
    budget_tokens: Annotated[int, at_most(20_000)] = Field(
        default=1500, ge=50, validation_alias=AliasChoices("budget_tokens", "budget")
    )


def build_context(call: Call, asked: ContextArguments) -> Reply:
    pack = call.store.context(asked.query, budget_tokens=asked.budget_tokens, filter=asked.filter())
    said = render.index_line(pack.index, pack.degraded)
    subject = render.line(asked.query, 80)
    head = f"# What the memories say about {subject}" if pack.text else f"Nothing found about {subject}."
    if pack.left_out and not pack.text:
        head = f"Nothing about {subject} fits into {asked.budget_tokens} tokens."
    counted = (
        f"{pack.tokens} tokens by {pack.tokenizer}" if pack.tokenizer != "estimate" else f"About {pack.tokens} tokens"
    )
    left = (
        f", {render.counted(pack.left_out, 'more passage', 'more passages')} left out for room" if pack.left_out else ""
    )
    same = f", {pack.duplicates} for saying the same" if pack.duplicates else ""
    data = {key: value for key, value in pack.as_dict().items() if key != "omitted"}
    if flags := render.flags_of(pack.text):
        data["flags"] = flags
    return Reply(render.answer(head, pack.text, f"{counted}{left}{same}.", said), data)


CONTEXT = Tool(
    "build_context",
    "Build a context pack",
    "The best passages about a question, with their sources, packed into a budget of tokens: one call in "
    "place of a search and many reads.",
    ContextArguments,
    build_context,
    record(
        ("degraded", "flags"),
        flags=TEXTS,
        query=TEXT,
        text=TEXT,
        tokens=COUNT,
        tokenizer=TEXT,
        items=several(MAP),
        left_out=COUNT,
        duplicates=COUNT,
        index=INDEX,
        degraded=TEXT,
    ),
)
