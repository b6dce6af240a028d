"""Prompts that a person picks (recall, remember, review), and completion of names and tags while they
type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    TextContent,
)

from simplemem.faces.instructions import joined
from simplemem.faces.render import answer, day, index_line, line, tags_line
from simplemem.server.door import Door

if TYPE_CHECKING:
    from simplemem.memory import Listed
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


def recall(store: EnhancedStore, said: Mapping[str, str]) -> str:
    """What the memories hold about a topic, put before the model at once."""
    topic = said["topic"]
    pack = store.context(topic, budget_tokens=2000)
    head = RECALL.format(topic=line(topic, 300))
    if not pack.text:
        head += "\n\nA first search found nothing."
    return answer(head, pack.text, index_line(pack.index, pack.degraded))


def remember(_store: EnhancedStore, said: Mapping[str, str]) -> str:
    """How to put something down well."""
    what = said.get("what", "").strip()
    return REMEMBER.format(subject=f"Remember this: {what}" if what else "Remember what matters of our conversation.")


def review(store: EnhancedStore, said: Mapping[str, str]) -> str:
    """What changed of late, and what is open, to be looked through together."""
    from simplemem.memory import Filter

    since, tag = said.get("since", "").strip() or "last week", said.get("tag", "").strip()
    page = store.list(filter=Filter.of(since=since, tags=tag or None), sort="modified", limit=40)
    lines = [_review_line(item) for item in page.items]
    head = REVIEW.format(since=line(since, 60), tagged=f" with the tag {line(tag, 60)}" if tag else "")
    if not lines:
        head += "\n\nThere is none."
    more = f"({page.total} in all; list_memories shows the rest.)" if page.total > len(lines) else ""
    return answer(head, "\n".join(lines), more, index_line(page.index))


def _review_line(item: Listed) -> str:
    about = line(item.description or item.title, 120)
    return f"- {day(item.modified)} **{line(item.name)}** {about} {tags_line(item.tags)}".rstrip()


@dataclass(frozen=True, slots=True)
class _Written:
    """A prompt: what a client lists, and what writes it."""

    shown: Prompt
    write: Callable[[EnhancedStore, Mapping[str, str]], str]


def _prompt(
    write: Callable[[EnhancedStore, Mapping[str, str]], str],
    title: str,
    description: str,
    *arguments: PromptArgument,
) -> _Written:
    shown = Prompt(name=write.__name__, title=title, description=description, arguments=list(arguments))
    return _Written(shown, write)


PROMPTS = {
    prompt.shown.name: prompt
    for prompt in (
        _prompt(
            recall,
            "Recall",
            "What do my memories say about a topic?",
            PromptArgument(name="topic", description="What it is about", required=True),
        ),
        _prompt(
            remember,
            "Remember",
            "Write something down as a memory, or what matters of this conversation.",
            PromptArgument(name="what", description="What to remember; empty for this conversation", required=False),
        ),
        _prompt(
            review,
            "Review",
            "Look through what changed of late and what is still open.",
            PromptArgument(
                name="since", description='"last week" (the default), "yesterday", 2026-01-24', required=False
            ),
            PromptArgument(name="tag", description="Only memories with this tag", required=False),
        ),
    )
}


class Prompts:
    """Answers `prompts/*` and `completion/complete`."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def shown(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[prompt.shown for prompt in PROMPTS.values()])

    async def get(self, _ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        prompt = PROMPTS.get(params.name)
        if prompt is None:
            raise MCPError(INVALID_PARAMS, f"There is no prompt {line(params.name, 60)!r}.")
        said = {name: value for name, value in (params.arguments or {}).items() if value}
        for argument in prompt.shown.arguments or []:
            if argument.required and argument.name not in said:
                raise MCPError(INVALID_PARAMS, f"The prompt {params.name} needs {argument.name!r}.")
        text = await self._door.read(lambda: prompt.write(self._door.store(), said))
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(description=prompt.shown.description, messages=[message])

    async def complete(self, _ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        typed, argument = params.argument.value, params.argument.name
        if isinstance(params.ref, PromptReference):
            find = {"tag": self._tags, "topic": self._names}.get(argument)
        else:
            find = self._names if argument == "name" else None
        found = await self._door.read(lambda: find(typed)) if find else []
        shown = found[:_MOST_COMPLETIONS]
        return CompleteResult(completion=Completion(values=shown, total=len(found), has_more=len(found) > len(shown)))

    def _names(self, typed: str) -> list[str]:
        return self._door.store().names(typed, limit=_MOST_COMPLETIONS + 1)

    def _tags(self, typed: str) -> list[str]:
        start = typed.lstrip("#").casefold()
        counted = sorted(self._door.store().tags().items(), key=lambda pair: (-pair[1], pair[0]))
        return [tag for tag, _ in counted if tag.casefold().startswith(start)]
