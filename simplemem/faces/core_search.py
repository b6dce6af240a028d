"""Finding: search_memories, get_backlinks, build_context. An answer that is less than whole says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, WithJsonSchema

from simplemem.errors import Invalid
from simplemem.faces import render
from simplemem.faces.arguments import LinkNarrowing, Mode, Name, Words, about, also, at_most
from simplemem.faces.face import Answer, Reply, tool
from simplemem.memory import Backlink, Hit, IndexState

if TYPE_CHECKING:
    from simplemem.memory import Found
    from simplemem.store import EnhancedStore

# Tokens of a hit, so that five of them stay below 1,500 however long titles and descriptions are.
_TITLE, _DESCRIPTION, _HEADING, _TAGS = 20, 36, 20, 30
_PARTS = ("words", "phrases", "meaning", "covered", "dated")
_MOST_WORDS = 12  # of a question, when it is explained
# In an explanation, by other fields of the answer.
_ELSEWHERE = {"words", "formula", "matched_nowhere", "legs", "ranked", "filter", "mode", "degraded"}


# --- search_memories


@dataclass(frozen=True, slots=True)
class ShortHit(Answer, Hit):
    """A hit of a size of which a model can read several; read_memory has the whole. `more_tags` are not shown, `flags`
    say what of it is not seen."""

    more_tags: int = 0
    flags: Sequence[str] = ()

    @classmethod
    def of(cls, hit: Hit, snippet_tokens: int) -> ShortHit:
        tags = render.first_tags(hit.tags, _TAGS)
        kept = {name: getattr(hit, name) for name in Hit.__slots__}
        kept |= {
            "title": render.brief(hit.title, _TITLE),
            "description": render.brief(hit.description, _DESCRIPTION),
            "type": render.brief(hit.type, 10),
            "authors": tuple(render.brief(name, 20) for name in hit.authors),
            "snippet": render.brief(hit.snippet, snippet_tokens),
            "heading": render.brief(hit.heading, _HEADING),
            "tags": tags,
        }
        seen = (kept["name"], kept["title"], kept["description"], kept["snippet"], kept["heading"], *tags)
        return cls(**kept, more_tags=len(hit.tags) - len(tags), flags=tuple(render.flags_of(*seen)))


@dataclass(frozen=True, slots=True)
class SearchAnswer(Answer):
    query: str
    mode: str
    hits: Sequence[ShortHit]
    index: IndexState
    explain: Mapping[str, Any] | None = None
    degraded: str = ""


@tool("Search memories")
def search_memories(
    store: EnhancedStore,
    where: LinkNarrowing,
    query: Annotated[str, about("a question or words; author:human|agent|any; empty: the newest")] = "",
    limit: Annotated[
        int | None, at_most(50), WithJsonSchema({"type": "integer", "minimum": 1, "default": 5}), Field(ge=1)
    ] = None,
    mode: Mode = "hybrid",
    explain: Annotated[bool, about("the numbers behind each rank")] = False,
) -> Reply[SearchAnswer]:
    """Search the memories by words and by meaning. Do this before answering from memory and before writing a new
    memory. Hits carry what is needed to answer and to cite; read_memory has the rest."""
    found = store.search(query, filter=where.filter(), limit=limit, mode=mode, explain=explain)
    snippet_tokens = store.settings.search.snippet_characters // 4 + 10
    answer = SearchAnswer(
        query=render.line(found.query, 1000),
        mode=found.mode,
        hits=[ShortHit.of(hit, snippet_tokens) for hit in found.hits],
        index=found.index,
        explain=_explanation(found) or None,
        degraded=found.degraded,
    )
    return Reply(_search_text(found, answer.hits), answer)


def _explanation(found: Found) -> dict[str, Any]:
    return {key: value for key, value in (found.explain or {}).items() if value and key not in _ELSEWHERE}


def _search_text(found: Found, hits: Sequence[ShortHit]) -> str:
    asked = f' for "{render.line(found.query, 80)}"' if found.query.strip() else ""
    state = render.index_line(found.index, found.degraded)
    if not hits:
        nothing = f"Nothing found{asked}, in {render.counted(found.index.notes, 'memory', 'memories')}."
        return f"{nothing} {state}".strip()
    lines = "\n\n".join(_hit_text(number, hit) for number, hit in enumerate(hits, 1))
    head = f"# {render.counted(len(hits), 'memory', 'memories')}{asked}"
    return render.answer(head, lines, _explained(found.explain) if found.explain else "", state, flagged=True)


def _explained(numbers: Mapping[str, Any]) -> str:
    """How the search was carried out, in a line or two; the numbers of every leg are in the data."""
    weights = " + ".join(f"{weight:g} × {part}" for part, weight in numbers["weights"].items() if weight)
    counts = [f"{word} in {count}" for word, count in list(numbers["notes_with"].items())[:_MOST_WORDS]]
    removed = (f"{each['filter']} {each['value']} removed {each['removed']}" for each in numbers["filters"])
    hidden = numbers["not_searched"].get("hidden", {})
    facts = render.facts(
        ("score =", weights),
        ("memories with", ", ".join(counts)),
        ("filters:", "; ".join(removed)),
        ("", f"{numbers['notes_after_filter']} of {numbers['notes']} memories searched"),
        ("left out:", "; ".join(f"{count} {reason}" for reason, count in hidden.items())),
    )
    return f"Explained: {facts}"


def _why_line(why: Mapping[str, Any]) -> str:
    legs = ", ".join(f"{leg} #{standing['rank']}" for leg, standing in why["legs"].items())
    parts = ", ".join(f"{part} {why[part]:.2f}" for part in _PARTS if why.get(part))
    return render.facts(("why:", parts), ("", legs), ("lacks", ", ".join(why["missing"][:_MOST_WORDS])))


def _hit_text(number: int, hit: ShortHit) -> str:
    title = f" {hit.title}" if hit.title and hit.title != hit.name else ""
    facts = render.facts(
        ("", f"{hit.heading}, line {hit.line}" if hit.heading else f"line {hit.line}"),
        ("type", hit.type if hit.type != "memory" else ""),
        ("", render.tags_line(hit.tags, hit.more_tags)),
        ("created", render.day(hit.created)),
        ("modified", render.day(hit.modified)),
        ("by", " ".join(filter(None, (render.line(" and ".join(hit.authors), 60), render.day(hit.written))))),
        ("score", f"{hit.score:.2f}"),
        ("sha256", render.short(hit.sha256)),
        ("holds", ", ".join(hit.flags)),
    )
    rows = [
        f"{number}. **{render.name_of(hit.name)}**{title}",
        hit.description,
        f"> {hit.snippet}" if hit.snippet else "",
        facts,
        _why_line(hit.why) if hit.why else "",
    ]
    return "\n   ".join(row for row in rows if row)


# --- get_backlinks


@dataclass(frozen=True, slots=True)
class ShortBacklink(Answer, Backlink):
    flags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class BacklinkList(Answer):
    items: Sequence[ShortBacklink]
    index: IndexState


@tool("Backlinks of a memory")
def get_backlinks(
    store: EnhancedStore,
    name: Name,
    query: Annotated[str | None, about("rank by nearness to this")] = None,
    limit: Annotated[int, at_most(50), Field(ge=1)] = 5,
    kinds: Annotated[Words, about('"link": it links here; "semantic": it is about the same')] = ["link", "semantic"],  # noqa: B006
) -> Reply[BacklinkList]:
    """What leads to a memory: memories that link to it, and memories about the same thing."""
    kinds = [kind.lower() for kind in kinds]
    if strange := [kind for kind in kinds if kind not in ("link", "semantic")]:
        raise Invalid(
            f"There is no kind of backlink called {strange[0][:40]!r}.", hint='There are "link" and "semantic".'
        )
    items = [_short(item) for item in store.backlinks(name, query=query, limit=limit, kinds=kinds)]
    index = store.state()
    to = render.name_of(name)
    head = f"# {render.counted(len({item.name for item in items}), 'memory leads', 'memories lead')} to {to}"
    lines = "\n".join(_backlink_line(item) for item in items)
    return Reply(render.answer(head, lines, render.index_line(index)), BacklinkList(items, index))


def _short(item: Backlink) -> ShortBacklink:
    item = replace(item, title=render.brief(item.title, _TITLE), snippet=render.brief(item.snippet, 75))
    kept = {name: getattr(item, name) for name in Backlink.__slots__}
    return ShortBacklink(**kept, flags=tuple(render.flags_of(item.name, item.title, item.snippet)))


def _backlink_line(item: Backlink) -> str:
    kind = "links here" if item.kind == "link" else "about the same"
    title = f" {item.title}" if item.title and item.title != item.name else ""
    snippet = f"\n  > {item.snippet}" if item.snippet else ""
    return f"- **{render.name_of(item.name)}**{title} ({kind}, line {item.line}, {item.score:.2f}){snippet}"


# --- build_context


@dataclass(frozen=True, slots=True)
class ContextPack(Answer):
    query: str
    text: str
    tokens: int
    tokenizer: str
    items: Sequence[Mapping[str, Any]]
    left_out: int
    duplicates: int
    index: IndexState
    degraded: str | None = None
    flags: Sequence[str] = ()


@tool("Build a context pack")
def build_context(
    store: EnhancedStore,
    where: LinkNarrowing,
    query: str,
    budget_tokens: Annotated[int, at_most(20_000), Field(ge=50), also("budget_tokens", "budget")] = 1500,
) -> Reply[ContextPack]:
    """The best passages about a question, with their sources, packed into a budget of tokens: one call in place of a
    search and many reads."""
    pack = store.context(query, budget_tokens=budget_tokens, filter=where.filter())
    subject = render.line(query, 80)
    head = f"# What the memories say about {subject}" if pack.text else f"Nothing found about {subject}."
    if pack.left_out and not pack.text:
        head = f"Nothing about {subject} fits into {budget_tokens} tokens."
    size = f"{pack.tokens} tokens by {pack.tokenizer}"
    size = f"About {pack.tokens} tokens" if pack.tokenizer == "estimate" else size
    more = render.counted(pack.left_out, "more passage", "more passages")
    left = f", {more} left out for room" if pack.left_out else ""
    same = f", {pack.duplicates} for saying the same" if pack.duplicates else ""
    kept = {name: getattr(pack, name) for name in ContextPack.__slots__ if name != "flags"}
    answer = ContextPack(**kept, flags=tuple(render.flags_of(pack.text)))
    state = render.index_line(pack.index, pack.degraded)
    return Reply(render.answer(head, pack.text, f"{size}{left}{same}.", state), answer)
