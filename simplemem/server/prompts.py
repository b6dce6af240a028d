"""Prompts that a person picks (recall, remember, review), and completion of names and tags while they type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from simplemem.faces.profiles import joined
from simplemem.faces.render import answer, day, index_line, line, tags_line
from simplemem.server.door import Door

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

Context = ServerRequestContext[Any, Any]

_MOST_COMPLETIONS = 100

RECALL = joined("""
Tell me what my memories say about: {topic}

Answer from the passages below and name the memory each fact is from. If they are not enough, look further
with search_memories and read_memory. If the memories do not say it, say so.
""").strip()

REMEMBER = joined("""
{subject}

First search the memories for its subject. If there is a memory of it, read that and update it: keep what
is still true, and correct what is not rather than add beside it. If there is none, create one: one subject,
a few sentences, a telling name and title, a description of one line, tags, and [[links]] to the people and
projects it touches. Keep dates and reasons. Leave out what can be looked up elsewhere, and all secrets.
Then tell me in one line what you wrote and where.
""").strip()

REVIEW = joined("""
Let us review my memories changed since {since}{tagged}.

Read those that look unfinished, outdated or double. Then tell me briefly: what was decided or learnt, what
is still open (tags like todo), what contradicts something else, and what should be merged, linked or
archived. Change nothing before I agree.
""").strip()


def recall(store: EnhancedStore, given: Mapping[str, str]) -> str:
    """What do my memories say about a topic?"""
    pack = store.context(given["topic"], budget_tokens=2000)
    head = RECALL.format(topic=line(given["topic"], 300))
    return answer(
        head if pack.text else f"{head}\n\nA first search found nothing.",
        pack.text,
        index_line(pack.index, pack.degraded),
    )


def remember(_store: EnhancedStore, given: Mapping[str, str]) -> str:
    """Write something down as a memory, or what matters of this conversation."""
    what = given.get("what", "").strip()
    return REMEMBER.format(subject=f"Remember this: {what}" if what else "Remember what matters of our conversation.")


def review(store: EnhancedStore, given: Mapping[str, str]) -> str:
    """Look through what changed of late and what is still open."""
    from simplemem.memory import Filter

    since, tag = given.get("since", "").strip() or "last week", given.get("tag", "").strip()
    page = store.list(filter=Filter.of(since=since, tags=tag or None), sort="modified", limit=40)
    head = REVIEW.format(since=line(since, 60), tagged=f" with the tag {line(tag, 60)}" if tag else "")
    lines = [
        f"- {day(each.modified)} **{line(each.name)}** {line(each.description or each.title, 120)} "
        f"{tags_line(each.tags)}".rstrip()
        for each in page.items
    ]
    more = f"({page.total} in all; list_memories shows the rest.)" if page.total > len(lines) else ""
    return answer(head if lines else f"{head}\n\nThere is none.", "\n".join(lines), more, index_line(page.index))


_ARGUMENTS = {
    recall: {"topic": "What it is about"},
    remember: {"what": "What to remember; empty for this conversation"},
    review: {"since": '"last week" (the default), "yesterday", 2026-01-24', "tag": "Only memories with this tag"},
}
PROMPTS = {
    write.__name__: types.Prompt(
        name=write.__name__,
        title=write.__name__.capitalize(),
        description=write.__doc__,
        arguments=[
            types.PromptArgument(name=name, description=about, required=name == "topic")
            for name, about in arguments.items()
        ],
    )
    for write, arguments in _ARGUMENTS.items()
}


class Prompts:
    """Answers `prompts/*` and `completion/complete`."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def shown(self, _ctx: Context, _params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(PROMPTS.values()))

    async def get(self, _ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if (prompt := PROMPTS.get(params.name)) is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {line(params.name, 60)!r}.")
        given = {name: value for name, value in (params.arguments or {}).items() if value}
        if missing := [each.name for each in prompt.arguments or [] if each.required and each.name not in given]:
            raise MCPError(types.INVALID_PARAMS, f"The prompt {params.name} needs {missing[0]!r}.")
        write = next(each for each in _ARGUMENTS if each.__name__ == params.name)
        text = await self._door.read(lambda: write(self._door.store(), given))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def complete(self, _ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        typed = params.argument.value

        def find() -> list[str]:
            store = self._door.store()
            if params.argument.name in ("topic", "name"):
                return store.names(typed, limit=_MOST_COMPLETIONS + 1)
            start = typed.lstrip("#").casefold() if params.argument.name == "tag" else None
            counted = sorted(store.tags().items(), key=lambda pair: (-pair[1], pair[0]))
            return [tag for tag, _ in counted if start is not None and tag.casefold().startswith(start)]

        found = await self._door.read(find)
        shown = found[:_MOST_COMPLETIONS]
        completion = types.Completion(values=shown, total=len(found), has_more=len(found) > len(shown))
        return types.CompleteResult(completion=completion)
