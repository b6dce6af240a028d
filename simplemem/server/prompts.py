"""Prompts that a person picks (recall, remember, review), and completion of names and tags while they type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from simplemem.faces.face import words_for_models
from simplemem.faces.render import answer, index_line, line, tags_line
from simplemem.server.calls import Context
from simplemem.server.door import Door

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MOST = 100  # completions


def recall(store: EnhancedStore, topic: str) -> str:
    """What do my memories say about a topic?"""
    pack = store.context(topic, budget_tokens=2000)
    head = words_for_models("recall").format(topic=line(topic, 300)).strip()
    head += "" if pack.text else "\n\nA first search found nothing."
    return answer(head, pack.text, index_line(pack.index, pack.degraded))


def remember(_store: EnhancedStore, what: str = "") -> str:
    """Write something down as a memory, or what matters of this conversation."""
    subject = f"Remember this: {what.strip()}" if what.strip() else "Remember what matters of our conversation."
    return words_for_models("remember").format(subject=subject).strip()


def review(store: EnhancedStore, since: str = "last week", tag: str = "") -> str:
    """Look through what changed of late and what is still open."""
    from simplemem.memory import Filter

    page = store.list(filter=Filter.of(since=since, tags=tag or None), sort="modified", limit=40)
    tagged = f" with the tag {line(tag, 60)}" if tag else ""
    head = words_for_models("review").format(since=line(since, 60), tagged=tagged).strip()
    lines = [
        f"- {each.modified[:10]} **{line(each.name)}** {line(each.description or each.title, 120)} "
        f"{tags_line(each.tags)}".rstrip()
        for each in page.items
    ]
    more = f"({page.total} in all; list_memories shows the rest.)" if page.total > len(lines) else ""
    head += "" if lines else "\n\nThere is none."
    return answer(head, "\n".join(lines), more, index_line(page.index))


def _prompt(write: Callable[..., str], **arguments: str) -> types.Prompt:
    shown = [types.PromptArgument(name=n, description=about, required=n == "topic") for n, about in arguments.items()]
    name = write.__name__
    return types.Prompt(name=name, title=name.capitalize(), description=write.__doc__, arguments=shown)


_WRITERS: Mapping[str, Callable[..., str]] = {"recall": recall, "remember": remember, "review": review}
_SINCE = '"last week" (the default), "yesterday", 2026-01-24'
PROMPTS = {
    "recall": _prompt(recall, topic="What it is about"),
    "remember": _prompt(remember, what="What to remember; empty for this conversation"),
    "review": _prompt(review, since=_SINCE, tag="Only memories with this tag"),
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
        sent = params.arguments or {}
        given = {each.name: sent[each.name] for each in prompt.arguments or [] if sent.get(each.name, "").strip()}
        if missing := [each.name for each in prompt.arguments or [] if each.required and each.name not in given]:
            raise MCPError(types.INVALID_PARAMS, f"The prompt {params.name} needs {missing[0]!r}.")
        text = await self._door.read(lambda: _WRITERS[params.name](self._door.store(), **given))
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])

    async def complete(self, _ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        argument = params.argument

        def find() -> list[str]:
            if argument.name in ("topic", "name"):
                return self._door.store().names(argument.value, limit=_MOST + 1)
            if argument.name != "tag":
                return []
            counted = sorted(self._door.store().tags().items(), key=lambda pair: (-pair[1], pair[0]))
            start = argument.value.lstrip("#").casefold()
            return [tag for tag, _ in counted if tag.casefold().startswith(start)]

        found = await self._door.read(find)
        shown = found[:_MOST]
        completion = types.Completion(values=shown, total=len(found), has_more=len(found) > len(shown))
        return types.CompleteResult(completion=completion)
