"""Prompts: a person picks one, and a model gets its text.

Each function with the decorator `_prompt` is a prompt. Its parameters are the arguments, as those
of a tool.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from simplemem.models import Listed, Page
from simplemem.tools.arguments import FilterArgs, about
from simplemem.tools.render import answer, index_line, line, tags_line
from simplemem.tools.tool import Caller, Reply, Tool, tool
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
    """Return a decorator that makes a prompt of a function, as `tool` makes a tool.

    `title` is shown to the person. `needs` are the names of the tools that the text of the prompt
    asks a model to use.
    """

    def decorate(run: Callable[..., Reply[Any]]) -> Prompt:
        as_tool = tool(title)(run)
        return Prompt(
            run,
            as_tool.name,
            title,
            as_tool.description,
            needs=frozenset(needs),
        )

    return decorate


Topic = Annotated[str, about("The topic")]
Text = Annotated[str, about("What to remember; this conversation if empty")]
Since = Annotated[str, about('"last week" (the default), "yesterday", 2026-01-24')]
OnlyTag = Annotated[str, about("Only memories with this tag")]


@_prompt("Recall", "search_memories", "read_memory")
def recall(store: EnhancedStore, topic: Topic) -> Reply[None]:
    """Tell what the memories say about a topic."""
    context = store.context(topic, budget_tokens=_CONTEXT_TOKENS)

    template = read_prompt("recall")
    text = template.format(topic=line(topic, 300)).strip()
    if not context.has_found:
        text += "\n\nA first search found nothing."
    elif context.notice:
        text += f"\n\nA first search found no answer. {context.notice}"

    index_state = index_line(context.index, context.degraded)
    whole_text = answer(text, context.text, index_state)
    return Reply(whole_text)


@_prompt("Remember", "search_memories", "read_memory", "create_memory", "update_memory")
def remember(what: Text = "") -> Reply[None]:
    """Save a text as a memory, or what matters in this conversation."""
    subject = "Remember what matters in our conversation."
    if what.strip():
        subject = f"Remember this: {what.strip()}"
    template = read_prompt("remember")
    text = template.format(subject=subject)
    return Reply(text.strip())


@_prompt("Review", "read_memory", "change_tag", "update_memory")
def review(
    store: EnhancedStore,
    since: Since = "last week",
    tag: OnlyTag = "",
) -> Reply[None]:
    """Review recent changes and open tasks."""
    narrowing = FilterArgs(since=since, tags=tag or None)
    page = store.list(filter=narrowing.filter(), sort="modified", limit=_MAX_NOTES)

    tagged = ""
    if tag:
        tagged = f" with the tag {line(tag, 60)}"
    template = read_prompt("review")
    text = template.format(since=line(since, 60), tagged=tagged).strip()
    if not page.items:
        text += "\n\nNo memory changed."

    items = [_note_item(note) for note in page.items]
    notes = "\n".join(items)
    notice = _count_notice(page)
    index_state = index_line(page.index, page.degraded)
    whole_text = answer(text, notes, notice, index_state)
    return Reply(whole_text)


def _note_item(note: Listed) -> str:
    """Return a note as an item of a Markdown list: day of change, name, description and tags.

    The title stands for a missing description.
    """
    day = note.modified[:10]
    name = line(note.name)
    description = line(note.description or note.title, 120)
    tags = tags_line(note.tags)
    details = f"{description} {tags}".rstrip()
    return f"- {day} **{name}** {details}"


def _count_notice(page: Page) -> str:
    """Return a sentence that says how many notes there are; "" if a page shows all of them."""
    if page.total <= len(page.items):
        return ""
    return f"({page.total} in total; these are the most recent.)"


PROMPTS: Final = {prompt.name: prompt for prompt in (recall, remember, review)}


def prompts_for(tools: Collection[Tool]) -> dict[str, Prompt]:
    """Return the prompts whose tools are all among these, by name."""
    tool_names = {tool.name for tool in tools}
    return {name: prompt for name, prompt in PROMPTS.items() if prompt.needs <= tool_names}


def list_prompts(tools: Collection[Tool]) -> types.ListPromptsResult:
    """Return the prompts whose tools are all among these, as the answer of the protocol."""
    prompts = prompts_for(tools).values()
    descriptions = [_describe(prompt) for prompt in prompts]
    return types.ListPromptsResult(prompts=descriptions)


def _describe(prompt: Prompt) -> types.Prompt:
    """Return a prompt in the form of the protocol, with its arguments."""
    required = prompt.input.get("required", ())
    arguments = []
    for name, schema in prompt.input["properties"].items():
        argument = types.PromptArgument(
            name=name,
            description=schema["description"],
            required=name in required,
        )
        arguments.append(argument)

    return types.Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=arguments,
    )


async def get_prompt(
    executor: StoreExecutor, params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    """Return the text of a prompt, as a message of the user. Empty arguments count as omitted.

    Raises MCPError if the prompt is not offered, Invalid if an argument is wrong.
    """
    prompt = prompts_for(executor.tools).get(params.name)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"no prompt called {line(params.name, 60)!r}")

    texts = params.arguments or {}
    non_empty = {name: text for name, text in texts.items() if text.strip()}
    arguments = prompt.adapter.read(prompt, non_empty)

    def run() -> Reply[Any]:
        caller: Caller = {"who": "", "tool": prompt.name}
        return prompt(executor.store(), caller, arguments)

    reply = await executor.run(run)
    content = types.TextContent(type="text", text=reply.text)
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=prompt.description, messages=[message])
