"""A profile as a server of the SDK: its tools, the prompts that a person picks, completion, and what surrounds every
request. Whatever happens, the model gets something it can act on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from simplemem import __version__
from simplemem.errors import ReadOnly, SimplememError, Unavailable
from simplemem.models import AUTHOR_SEPARATOR
from simplemem.profiles.profile import Profile
from simplemem.server.resources import Resources
from simplemem.server.sessions import Granted, Sessions, client_name, grant_of
from simplemem.tools.arguments import Narrowing, about
from simplemem.tools.render import answer, error_data, index_line, line, tags_line
from simplemem.tools.session import Session
from simplemem.tools.tool import Caller, Reply, Tool, tool
from simplemem.tools.wording import in_tool_terms, of_what_is_there, read_prompt

if TYPE_CHECKING:
    from simplemem.server.serve import Door
    from simplemem.store import EnhancedStore

log = logging.getLogger("simplemem.server")

Context = ServerRequestContext[Any, Any]

_AFTER_THE_LIST = 0.05  # seconds until the heavy work begins: the client has its list first
_MOST_COMPLETIONS = 100
_COMMIT = "simplemem/commit"  # in the `_meta` of a call: what it must know of; of an answer: what it is of


def assemble(profile: Profile, tools: tuple[Tool, ...], door: Door) -> Server[Any]:
    """A server of the SDK for a profile on a store, for any transport."""
    sessions = Sessions()
    resources = Resources(
        door, is_graph=profile.known_as is not None, has_users=profile.has_users, sessions=sessions
    )
    by_name, door.tools = {tool.name: tool for tool in tools}, tools

    async def list_tools(_ctx: Context, _params: Any) -> types.ListToolsResult:
        asyncio.get_running_loop().call_later(_AFTER_THE_LIST, door.tend)
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(tool.listing()) for tool in tools]
        )

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if (wanted := by_name.get(params.name)) is None:
            if profile.known_as:
                return _result(f"MCP error -32602: Tool {params.name} not found", None)
            raise MCPError(types.INVALID_PARAMS, f"no tool called {line(params.name, 60)!r}")
        who = client_name(ctx)
        granted = grant_of(ctx)
        after = (params.meta or {}).get(_COMMIT)
        after = after if isinstance(after, str) else ""
        session = sessions.session_of(ctx)
        work = partial(perform, wanted, door, params.arguments, who, granted, after, session)
        result = await door.run(work, writes=wanted.writes)
        if wanted.writes and not result.is_error:
            await resources.changed_here()
        if result.structured_content:
            ctx.lifespan_context["data"], result.structured_content = result.structured_content, {}
        return result

    more: dict[str, Any] = {}
    if profile.known_as is None:
        for_a_while = CacheHint(ttl_ms=300_000, scope="private")
        more = {
            "title": "simplemem",
            "description": "Long-term memory in Markdown notes, searched by words, meaning and links.",
            "instructions": profile.instructions,
            "cache_hints": dict.fromkeys(
                ("tools/list", "prompts/list", "resources/templates/list"), for_a_while
            ),
            "on_list_prompts": partial(_list_prompts, door),
            "on_get_prompt": partial(_get_prompt, door),
            "on_completion": partial(_complete, door, resources),
        }
    name, version = profile.known_as or ("simplemem", __version__)
    server: Server[Any] = Server(
        name,
        version=version,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=resources.shown,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_subscriptions_listen=resources.listen,
        **more,
    )
    server.middleware.append(partial(_around, door))
    return server


async def _around(door: Door, ctx: Context, call_next: CallNext) -> HandlerResult:
    """Errors outside the tools come as the protocol's; data goes past the SDK, which would copy and check it twice."""
    ctx = replace(ctx, lifespan_context={})
    try:
        after = (ctx.meta or {}).get(_COMMIT)
        if (
            isinstance(after, str) and ctx.method != "tools/call"
        ):  # a call answers by itself when it is not there
            await door.run(lambda: door.store().reach(after))
        answer = await call_next(ctx)
    except SimplememError as error:
        raise MCPError(
            types.INVALID_PARAMS, line(error.message, 400), data=error_data(error)
        ) from None
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        log.exception("%s failed", line(ctx.method, 60))
        raise MCPError(
            types.INTERNAL_ERROR, f"internal error in simplemem ({type(error).__name__})"
        ) from None
    if isinstance(answer, dict) and "structuredContent" in answer:
        answer["structuredContent"] = ctx.lifespan_context.get("data", {})
    return answer


def carry_out(
    tool: Tool,
    door: Door,
    sent: Mapping[str, Any] | None,
    who: str,
    granted: Granted | None,
    session: Session | None = None,
) -> Reply[Any]:
    """Call a tool in this thread, as far as a token allows. Without a session, the client has read nothing before."""
    if granted is not None:
        if tool.writes and not granted.may("write"):
            hint = "Nothing was changed. Use a token with the scope write (`simplemem token new NAME --write`)."
            raise ReadOnly(f"{tool.name} writes, and this token may only read", hint=hint)
        sent = granted.bound(sent, tool.arguments)
    store = door.store()
    store.extension.take_notices()  # of an earlier call in this thread

    arguments = tool.manner.read(tool, sent)
    caller: Caller = {"who": _author(who, granted), "tool": tool.name}
    reply = tool(store, caller, arguments, session)
    return replace(reply, notices=tuple(store.extension.take_notices()))


def _author(client: str, granted: Granted | None) -> str:
    """Return how the history names a caller: by its token, then by the name that the client states.

    Only the token is verified. Without one, no client can take a name that begins like a token's.
    """
    if granted is None:
        return client.replace(AUTHOR_SEPARATOR, ":")
    return f"{granted.name}{AUTHOR_SEPARATOR}{client}" if client else granted.name


def perform(
    tool: Tool,
    door: Door,
    sent: Mapping[str, Any] | None,
    who: str,
    granted: Granted | None = None,
    after: str = "",
    session: Session | None = None,
) -> types.CallToolResult:
    """Run a tool in this thread. Failures are answers; none is silent, tells a secret or hints at a tool not shown."""
    try:
        if after:
            door.store().reach(after)
        store = door.store()
        before = "" if tool.writes else store.commit()  # no later than what is answered
        reply = carry_out(tool, door, sent, who, granted, session)
        result = _result(reply.text, reply.data(), is_error=False)
        for notice in reply.notices:
            if notice not in reply.text:  # the format of some profiles has no place for a warning
                result.content.append(types.TextContent(type="text", text=line(notice, 600)))
        if commit := door.store().commit(written=True) if tool.writes else before:
            result.meta = {_COMMIT: commit}
        return result
    except SimplememError as error:
        error.withhold_folders(door.private_folders)
        failure = error
    except Exception as error:
        # Its message may quote a note or a path: the log says where it happened, the model what it may do.
        log.exception("the tool %s failed", tool.name)
        failure = Unavailable(
            f"{tool.name} failed with an internal error in simplemem ({type(error).__name__})",
            hint="The server's log has details. Read the memory before you try again.",
        )
    failure.hint = of_what_is_there(in_tool_terms(failure.hint), door.tools).strip()
    return _result(*tool.manner.failed(failure))


def _result(
    text: str, data: dict[str, Any] | None, *, is_error: bool = True
) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)


# --- prompts: tools that a person calls, whose answer a model is asked


@tool("Recall")
def recall(store: EnhancedStore, topic: Annotated[str, about("The topic")]) -> Reply[None]:
    """Tell what the memories say about a topic."""
    pack = store.context(topic, budget_tokens=2000)
    head = read_prompt("recall").format(topic=line(topic, 300)).strip()
    if not pack.text:
        head += "\n\nA first search found nothing."
    elif pack.notice:
        head += f"\n\nA first search found no answer. {pack.notice}"
    return Reply(answer(head, pack.text, index_line(pack.index, pack.degraded)))


@tool("Remember")
def remember(
    what: Annotated[str, about("What to remember; this conversation if empty")] = "",
) -> Reply[None]:
    """Save a text as a memory, or what matters in this conversation."""
    subject = (
        f"Remember this: {what.strip()}"
        if what.strip()
        else "Remember what matters in our conversation."
    )
    return Reply(read_prompt("remember").format(subject=subject).strip())


@tool("Review")
def review(
    store: EnhancedStore,
    since: Annotated[
        str, about('"last week" (the default), "yesterday", 2026-01-24')
    ] = "last week",
    tag: Annotated[str, about("Only memories with this tag")] = "",
) -> Reply[None]:
    """Review recent changes and open tasks."""
    page = store.list(
        filter=Narrowing(since=since, tags=tag or None).filter(), sort="modified", limit=40
    )
    tagged = f" with the tag {line(tag, 60)}" if tag else ""
    head = read_prompt("review").format(since=line(since, 60), tagged=tagged).strip()
    lines = []
    for each in page.items:
        said = f"{line(each.description or each.title, 120)} {tags_line(each.tags)}".rstrip()
        lines.append(f"- {each.modified[:10]} **{line(each.name)}** {said}")
    more = f"({page.total} in total; these are the most recent.)" if page.total > len(lines) else ""
    head += "" if lines else "\n\nNo memory changed."
    return Reply(answer(head, "\n".join(lines), more, index_line(page.index, page.degraded)))


PROMPTS = {prompt.name: prompt for prompt in (recall, remember, review)}
_TOOLS_OF_PROMPTS: dict[str, frozenset[str]] = {
    "recall": frozenset({"search_memories", "read_memory"}),
    "remember": frozenset({"search_memories", "read_memory", "create_memory", "update_memory"}),
    "review": frozenset({"read_memory", "change_tag", "update_memory"}),
}
"""The tools that a model needs to do what a prompt asks for."""


def prompts_for(tools: Collection[Tool]) -> dict[str, Tool]:
    """The prompts that can be followed with these tools. A profile without our tools has none."""
    names = {tool.name for tool in tools}
    return {name: prompt for name, prompt in PROMPTS.items() if _TOOLS_OF_PROMPTS[name] <= names}


async def _list_prompts(door: Door, _ctx: Context, _params: Any) -> types.ListPromptsResult:
    shown = []
    for prompt in prompts_for(door.tools).values():
        needed, texts = prompt.input.get("required", ()), prompt.input["properties"].items()
        arguments = [
            {"name": n, "description": each["description"], "required": n in needed}
            for n, each in texts
        ]
        about_it = {"name": prompt.name, "title": prompt.title, "description": prompt.description}
        shown.append(types.Prompt.model_validate({**about_it, "arguments": arguments}))
    return types.ListPromptsResult(prompts=shown)


async def _get_prompt(
    door: Door, _ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    if (prompt := prompts_for(door.tools).get(params.name)) is None:
        raise MCPError(types.INVALID_PARAMS, f"no prompt called {line(params.name, 60)!r}")
    sent = {name: text for name, text in (params.arguments or {}).items() if text.strip()}
    arguments = prompt.manner.read(prompt, sent)
    reply = await door.run(
        lambda: prompt(door.store(), {"who": "", "tool": prompt.name}, arguments)
    )
    ours, mark, notes = reply.text.partition("<note ")
    text = of_what_is_there(ours, door.tools) + mark + notes
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])


async def _complete(
    door: Door, resources: Resources, _ctx: Context, params: types.CompleteRequestParams
) -> types.CompleteResult:
    """Names and tags while they are typed. Tags count the notes of all users, so they are hidden with those."""
    argument = params.argument
    found: list[str] = []
    if argument.name in ("topic", "name"):
        found = await door.run(lambda: resources.names(argument.value, _MOST_COMPLETIONS + 1))
    elif argument.name == "tag" and not await door.run(lambda: resources.hides_users(door.store())):
        counts = await door.run(lambda: door.store().tags())
        start = argument.value.lstrip("#").casefold()
        found = [
            tag
            for tag in sorted(counts, key=lambda tag: (-counts[tag], tag))
            if tag.casefold().startswith(start)
        ]
    shown = found[:_MOST_COMPLETIONS]
    completion = types.Completion(values=shown, total=len(found), has_more=len(found) > len(shown))
    return types.CompleteResult(completion=completion)
