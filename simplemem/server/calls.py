"""A profile as a server of the SDK: its tools, completion, and what surrounds every request.

Every tool call passes through `run_tool`, over MCP (`answer_call`) and over REST
(`simplemem.web.rest`). Whatever happens, the model gets an answer that it can act on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

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
from simplemem.server.prompts import get_prompt, list_prompts
from simplemem.server.resources import Resources
from simplemem.server.sessions import Granted, Sessions, client_name, grant_of
from simplemem.tools.render import error_data, line
from simplemem.tools.session import Session
from simplemem.tools.tool import Caller, Data, Reply, Tool
from simplemem.tools.wording import in_tool_terms, without_missing_tools

if TYPE_CHECKING:
    from simplemem.server.executor import StoreExecutor

log = logging.getLogger("simplemem.server")

Context = ServerRequestContext[Any, Any]

_SECONDS_AFTER_LIST: Final = 0.05  # until the index is loaded: the client has its list first
_MAX_COMPLETIONS: Final = 100
_DESCRIPTION: Final = "Long-term memory in Markdown notes, searched by words, meaning and links."
_READ_ONLY_HINT: Final = (
    "Nothing was changed. Use a token with the scope write (`simplemem token new NAME --write`)."
)

# In `_meta`: of a request, the commit that its answer must include; of an answer, its commit.
_COMMIT: Final = "simplemem/commit"


def assemble(profile: Profile, tools: tuple[Tool, ...], executor: StoreExecutor) -> Server[Any]:
    """Return a server of the SDK for a profile on a store, for any transport."""
    sessions = Sessions()
    resources = Resources(
        executor,
        is_graph=profile.known_as is not None,
        has_users=profile.has_users,
        sessions=sessions,
    )
    tools_by_name = {tool.name: tool for tool in tools}
    executor.tools = tools

    async def list_tools(_ctx: Context, _params: Any) -> types.ListToolsResult:
        asyncio.get_running_loop().call_later(_SECONDS_AFTER_LIST, executor.start_indexing)
        listed = [types.Tool.model_validate(tool.listing()) for tool in tools]
        return types.ListToolsResult(tools=listed)

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools_by_name.get(params.name)
        if tool is None:
            if profile.known_as:
                return _result(f"MCP error -32602: Tool {params.name} not found", None)
            raise MCPError(types.INVALID_PARAMS, f"no tool called {line(params.name, 60)!r}")

        after = (params.meta or {}).get(_COMMIT)
        call = ToolCall(
            params.arguments,
            client_name(ctx),
            grant_of(ctx),
            after if isinstance(after, str) else "",
            sessions.session_of(ctx),
        )
        result = await executor.run(partial(answer_call, tool, executor, call), writes=tool.writes)
        if tool.writes and not result.is_error:
            await resources.changed_here()
        if result.structured_content:
            # `_around` puts it back: the SDK would copy and check it.
            ctx.lifespan_context["data"] = result.structured_content
            result.structured_content = {}
        return result

    async def on_list_prompts(_ctx: Context, _params: Any) -> types.ListPromptsResult:
        return list_prompts(executor.tools)

    async def on_get_prompt(
        _ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await get_prompt(executor, params)

    more: dict[str, Any] = {}
    if profile.known_as is None:
        for_a_while = CacheHint(ttl_ms=300_000, scope="private")
        more = {
            "title": "simplemem",
            "description": _DESCRIPTION,
            "instructions": profile.instructions,
            "cache_hints": dict.fromkeys(
                ("tools/list", "prompts/list", "resources/templates/list"), for_a_while
            ),
            "on_list_prompts": on_list_prompts,
            "on_get_prompt": on_get_prompt,
            "on_completion": partial(_complete, executor, resources),
        }
    name, version = profile.known_as or ("simplemem", __version__)
    server: Server[Any] = Server(
        name,
        version=version,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=resources.list_page,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_subscriptions_listen=resources.listen,
        **more,
    )
    server.middleware.append(partial(_around, executor))
    return server


async def _around(executor: StoreExecutor, ctx: Context, call_next: CallNext) -> HandlerResult:
    """Handle a request. Errors outside the tools become errors of the protocol.

    The structured content of an answer passes by the SDK, which would copy and check it twice.
    """
    ctx = replace(ctx, lifespan_context={})
    try:
        after = (ctx.meta or {}).get(_COMMIT)
        # `answer_call` does this for a tool: its answer says that a commit is missing.
        if isinstance(after, str) and ctx.method != "tools/call":
            await executor.run(lambda: executor.store().reach(after))
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


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool: its arguments, who makes it, and what it may and must see.

    Attributes:
        client: The name and version that the client states.
        grant: What the token of the request allows; None without one.
        after: The commit that the answer must include; "" for any.
        session: What the client has read before; None if it has read nothing.
    """

    arguments: Mapping[str, Any] | None
    client: str
    grant: Granted | None = None
    after: str = ""
    session: Session | None = None


def run_tool(tool: Tool, executor: StoreExecutor, call: ToolCall) -> Reply[Any]:
    """Run a tool in this thread, as far as the token of the call allows.

    The reply has the notices of the store, such as notes that are not indexed yet. Raise ReadOnly if
    the token may only read, Invalid if an argument is wrong, and what the tool raises.
    """
    arguments = call.arguments
    if call.grant is not None:
        if tool.writes and not call.grant.may("write"):
            message = f"{tool.name} writes, and this token may only read"
            raise ReadOnly(message, hint=_READ_ONLY_HINT)
        arguments = call.grant.restrict_arguments(arguments, tool.user_arguments)

    store = executor.store()
    store.extension.take_notices()  # of an earlier call in this thread

    validated = tool.manner.read(tool, arguments)
    caller: Caller = {"who": _author(call.client, call.grant), "tool": tool.name}
    reply = tool(store, caller, validated, call.session)
    return replace(reply, notices=tuple(store.extension.take_notices()))


def _author(client: str, granted: Granted | None) -> str:
    """Return how the history names a caller: by its token, then by the name that the client states.

    Only the token is verified. Without one, no client can take a name that begins like a token's.
    """
    if granted is None:
        return client.replace(AUTHOR_SEPARATOR, ":")
    return f"{granted.name}{AUTHOR_SEPARATOR}{client}" if client else granted.name


def answer_call(tool: Tool, executor: StoreExecutor, call: ToolCall) -> types.CallToolResult:
    """Run a tool in this thread and return its answer. An error is an answer too.

    The answer contains no path outside the vault and names no tool that the client lacks.
    """
    try:
        return _run_for_answer(tool, executor, call)
    except SimplememError as raised:
        raised.withhold_folders(executor.private_folders)
        error = raised
    except Exception as bug:
        # Its message may quote a note or a path. The log says where it happened.
        log.exception("the tool %s failed", tool.name)
        error = Unavailable(
            f"{tool.name} failed with an internal error in simplemem ({type(bug).__name__})",
            hint="The server's log has details. Read the memory before you try again.",
        )

    error.hint = without_missing_tools(in_tool_terms(error.hint), executor.tools).strip()
    return _result(*tool.manner.failed(error))


def _run_for_answer(tool: Tool, executor: StoreExecutor, call: ToolCall) -> types.CallToolResult:
    """Run a tool and return its answer, the notices of the store and the commit it includes."""
    if call.after:
        executor.store().reach(call.after)
    commit = "" if tool.writes else executor.store().commit()  # not later than what is read

    reply = run_tool(tool, executor, call)
    result = _result(reply.text, reply.data(), is_error=False)
    for notice in reply.notices:
        if notice not in reply.text:  # the format of some profiles has no place for it
            result.content.append(types.TextContent(type="text", text=line(notice, 600)))

    if tool.writes:
        commit = executor.store().commit(written=True)
    if commit:
        result.meta = {_COMMIT: commit}
    return result


def _result(text: str, data: Data | None, *, is_error: bool = True) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)


async def _complete(
    executor: StoreExecutor,
    resources: Resources,
    _ctx: Context,
    params: types.CompleteRequestParams,
) -> types.CompleteResult:
    """Complete a name or a tag.

    Tags count the notes of all users, so they are hidden with those.
    """
    argument = params.argument
    values: list[str] = []
    if argument.name in ("topic", "name"):
        values = await executor.run(lambda: resources.names(argument.value, _MAX_COMPLETIONS + 1))
    elif argument.name == "tag":
        values = await executor.run(lambda: _matching_tags(executor, resources, argument.value))

    completion = types.Completion(
        values=values[:_MAX_COMPLETIONS],
        total=len(values),
        has_more=len(values) > _MAX_COMPLETIONS,
    )
    return types.CompleteResult(completion=completion)


def _matching_tags(executor: StoreExecutor, resources: Resources, typed: str) -> list[str]:
    """Return the tags that begin like this, the most frequent first."""
    store = executor.store()
    if resources.hides_users(store):
        return []
    counts = store.tags()
    beginning = typed.lstrip("#").casefold()
    matching = [tag for tag in counts if tag.casefold().startswith(beginning)]
    return sorted(matching, key=lambda tag: (-counts[tag], tag))
