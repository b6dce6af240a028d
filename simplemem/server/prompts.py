"""Prompts: a person picks one, and a model gets its text."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from simplemem.models import Listed, Page
from simplemem.tools.arguments import Narrowing, about
from simplemem.tools.render import answer, index_line, line, tags_line
from simplemem.tools.tool import Reply, Tool, tool
from simplemem.tools.wording import read_prompt

if TYPE_CHECKING:
    from simplemem.server.executor import StoreExecutor
    from simplemem.store import EnhancedStore

_CONTEXT_TOKENS: Final = 2000
_MAX_NOTES: Final = 40


@dataclass(frozen=True)
class Prompt(Tool):
    """A tool that a person calls. It is offered where a model has every tool in `needs`."""

    needs: frozenset[str] = frozenset()


def _prompt(title: str, *needs: str) -> Callable[[Callable[..., Reply[Any]]], Prompt]:
    """Return a decorator that makes a prompt of a function, as `tool` makes a tool."""

    def decorate(run: Callable[..., Reply[Any]]) -> Prompt:
        made = tool(title)(run)
        return Prompt(run, made.name, title, made.description, needs=frozenset(needs))

    return decorate


@_prompt("Recall", "search_memories", "read_memory")
def recall(store: EnhancedStore, topic: Annotated[str, about("The topic")]) -> Reply[None]:
    """Tell what the memories say about a topic."""
    pack = store.context(topic, budget_tokens=_CONTEXT_TOKENS)

    head = read_prompt("recall").format(topic=line(topic, 300)).strip()
    if not pack.text:
        head += "\n\nA first search found nothing."
    elif pack.notice:
        head += f"\n\nA first search found no answer. {pack.notice}"
    return Reply(answer(head, pack.text, index_line(pack.index, pack.degraded)))


@_prompt("Remember", "search_memories", "read_memory", "create_memory", "update_memory")
def remember(
    what: Annotated[str, about("What to remember; this conversation if empty")] = "",
) -> Reply[None]:
    """Save a text as a memory, or what matters in this conversation."""
    subject = "Remember what matters in our conversation."
    if what.strip():
        subject = f"Remember this: {what.strip()}"
    return Reply(read_prompt("remember").format(subject=subject).strip())


@_prompt("Review", "read_memory", "change_tag", "update_memory")
def review(
    store: EnhancedStore,
    since: Annotated[
        str, about('"last week" (the default), "yesterday", 2026-01-24')
    ] = "last week",
    tag: Annotated[str, about("Only memories with this tag")] = "",
) -> Reply[None]:
    """Review recent changes and open tasks."""
    where = Narrowing(since=since, tags=tag or None)
    page = store.list(filter=where.filter(), sort="modified", limit=_MAX_NOTES)

    tagged = f" with the tag {line(tag, 60)}" if tag else ""
    head = read_prompt("review").format(since=line(since, 60), tagged=tagged).strip()
    if not page.items:
        head += "\n\nNo memory changed."
    listing = "\n".join(_changed_note(note) for note in page.items)
    return Reply(answer(head, listing, _rest_of(page), index_line(page.index, page.degraded)))


def _changed_note(note: Listed) -> str:
    """Return a note as an item of a list."""
    description = line(note.description or note.title, 120)
    facts = f"{description} {tags_line(note.tags)}".rstrip()
    return f"- {note.modified[:10]} **{line(note.name)}** {facts}"


def _rest_of(page: Page) -> str:
    if page.total <= len(page.items):
        return ""
    return f"({page.total} in total; these are the most recent.)"


PROMPTS: Final = {prompt.name: prompt for prompt in (recall, remember, review)}


def prompts_for(tools: Collection[Tool]) -> dict[str, Prompt]:
    """Return the prompts that a model can follow with these tools."""
    names = {tool.name for tool in tools}
    return {name: prompt for name, prompt in PROMPTS.items() if prompt.needs <= names}


def list_prompts(tools: Collection[Tool]) -> types.ListPromptsResult:
    """Return the prompts that a model can follow with these tools, for the protocol."""
    prompts = [_described(prompt) for prompt in prompts_for(tools).values()]
    return types.ListPromptsResult(prompts=prompts)


def _described(prompt: Prompt) -> types.Prompt:
    required = prompt.input.get("required", ())
    arguments = [
        {
            "name": name,
            "description": schema["description"],
            "required": name in required,
        }
        for name, schema in prompt.input["properties"].items()
    ]
    return types.Prompt.model_validate(
        {
            "name": prompt.name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": arguments,
        }
    )


async def get_prompt(
    executor: StoreExecutor, params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    """Return the text of a prompt.

    Raise MCPError if it is not offered, Invalid if an argument is wrong.
    """
    prompt = prompts_for(executor.tools).get(params.name)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"no prompt called {line(params.name, 60)!r}")

    passed = {name: text for name, text in (params.arguments or {}).items() if text.strip()}
    arguments = prompt.manner.read(prompt, passed)
    reply = await executor.run(
        lambda: prompt(executor.store(), {"who": "", "tool": prompt.name}, arguments)
    )
    content = types.TextContent(type="text", text=reply.text)
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=prompt.description, messages=[message])
