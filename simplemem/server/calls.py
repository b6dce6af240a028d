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
from simplemem.errors import Proposed, ReadOnly, SimplememError, Unavailable
from simplemem.models import AUTHOR_SEPARATOR
from simplemem.profiles.profile import Profile
from simplemem.server.apps import (
    EXTENSION_ID,
    app_tools,
    list_with_app,
    supports_apps,
)
from simplemem.server.client_log import ClientKey, ClientLog
from simplemem.server.confirmation import ask_user, can_ask, question_of
from simplemem.server.prompts import get_prompt, list_prompts
from simplemem.server.resources import Resources
from simplemem.server.sessions import Granted, Sessions, client_name, grant_of
from simplemem.tools.render import error_data, line
from simplemem.tools.session import Session
from simplemem.tools.tool import Caller, Data, Reply, Tool
from simplemem.tools.wording import hint_for_tools

if TYPE_CHECKING:
    from simplemem.server.executor import StoreExecutor

log = logging.getLogger("simplemem.server")

Context = ServerRequestContext[Any, Any]

_SECONDS_AFTER_LIST: Final = 0.05  # until the index is loaded: the client has its list first
_LIST_CACHE_MS: Final = 300_000
_MAX_COMPLETIONS: Final = 100
_MAX_NOTICE: Final = 600  # characters
_DESCRIPTION: Final = "Long-term memory in Markdown notes, searched by words, meaning and links."
_READ_ONLY_HINT: Final = (
    "Nothing was changed. Use a token with the scope write (`simplemem token new NAME --write`)."
)

# In `_meta`: of a request, the commit that its answer must include; of an answer, its commit.
_COMMIT: Final = "simplemem/commit"
# Of the context of a request: the structured content that the SDK does not get to see.
_STRUCTURED: Final = "structured_content"


def assemble(
    profile: Profile,
    tools: tuple[Tool, ...],
    executor: StoreExecutor,
    clients: ClientLog | None = None,
) -> Server[Any]:
    """Return a server of the SDK for a profile on a store, for any transport.

    Tells the executor which tools the client sees. `clients` records who sends requests.
    """
    executor.tools = tools
    sessions = Sessions()
    resources = Resources(
        executor,
        is_graph=profile.known_as is not None,
        has_users=profile.has_users,
        sessions=sessions,
    )
    handlers = _Handlers(profile, tools, executor, resources, sessions)

    options: dict[str, Any] = {}
    if profile.known_as is None:
        options = _options_of_our_own(profile, handlers)
    name, version = profile.known_as or ("simplemem", __version__)
    server: Server[Any] = Server(
        name,
        version=version,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=resources.list_page,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_subscribe_resource=resources.subscribe,
        on_unsubscribe_resource=resources.unsubscribe,
        on_subscriptions_listen=resources.listen,
        **options,
    )
    if profile.known_as is None:
        server.extensions[EXTENSION_ID] = {}
    server.middleware.append(partial(_handle_request, executor))
    if clients is not None:
        server.middleware.append(partial(_record_client, clients))
    return server


def _options_of_our_own(profile: Profile, handlers: _Handlers) -> dict[str, Any]:
    """Return the options of a server that does not replace another: texts, prompts, completion.

    They are arguments of the SDK's `Server`, by name.
    """
    hint = CacheHint(ttl_ms=_LIST_CACHE_MS, scope="private")
    cached_lists = ("tools/list", "prompts/list", "resources/templates/list")
    return {
        "title": "simplemem",
        "description": _DESCRIPTION,
        "instructions": profile.instructions,
        "cache_hints": dict.fromkeys(cached_lists, hint),
        "on_list_prompts": handlers.list_prompts,
        "on_get_prompt": handlers.get_prompt,
        "on_completion": handlers.complete,
    }


class _Handlers:
    """Answers the requests about tools, prompts and completion of one server."""

    def __init__(
        self,
        profile: Profile,
        tools: tuple[Tool, ...],
        executor: StoreExecutor,
        resources: Resources,
        sessions: Sessions,
    ) -> None:
        self._profile = profile
        self._tools = {tool.name: tool for tool in tools}
        self._executor = executor
        self._resources = resources
        self._sessions = sessions

    async def list_tools(self, ctx: Context, _params: Any) -> types.ListToolsResult:
        """Answer `tools/list`. 0.05 seconds later, the index begins to be updated.

        A client that supports apps sees the tools of the app too, unless the server emulates
        another one.
        """
        loop = asyncio.get_running_loop()
        loop.call_later(_SECONDS_AFTER_LIST, self._executor.start_indexing)
        if self._has_app(ctx):
            listings = list_with_app([*self._tools.values()])
        else:
            listings = [tool.listing() for tool in self._tools.values()]
        tools = [types.Tool.model_validate(listing) for listing in listings]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Answer `tools/call`. An error of a tool is an answer too.

        If the user must be asked first, the answer may be the question. After a call that writes,
        notifies the subscribers of the graph. Raises MCPError if there is no such tool, unless the
        replaced server answers it otherwise.
        """
        tool = self._find_tool(ctx, params.name)
        if tool is None:
            if self._profile.known_as:
                return _result(f"MCP error -32602: Tool {params.name} not found", None)
            raise MCPError(types.INVALID_PARAMS, f"no tool called {line(params.name, 60)!r}")

        call = ToolCall(
            params.arguments,
            client=client_name(ctx),
            grant=grant_of(ctx),
            after=_required_commit(params.meta),
            session=self._sessions.session_of(ctx),
        )
        refusal = await self._confirm(ctx, params, tool)
        if refusal is not None:
            return refusal

        answer = partial(answer_call, tool, self._executor, call)
        result = await self._executor.run(answer, writes=tool.writes)
        if tool.writes and not result.is_error:
            await self._resources.changed_here()

        if result.structured_content:
            # `_handle_request` puts it back: the SDK would copy and check it.
            ctx.lifespan_context[_STRUCTURED] = result.structured_content
            result.structured_content = {}
        return result

    async def _confirm(
        self, ctx: Context, params: types.CallToolRequestParams, tool: Tool
    ) -> types.CallToolResult | types.InputRequiredResult | None:
        """Ask the user before a call, if necessary, and return None if the call may be made.

        Otherwise, returns the answer to the call: the question to the user, or an error. A server
        that emulates another one never asks.
        """
        may_need_question = tool.question is not None or tool.deletes
        if self._profile.known_as is not None or not may_need_question or not can_ask(ctx):
            return None
        try:
            ask = partial(question_of, tool, self._executor, params.arguments)
            question = await self._executor.run(ask)
            return await ask_user(ctx, params, question) if question else None
        except SimplememError as error:
            error.hint = hint_for_tools(error.hint, self._executor.tools)
            return _result(*tool.adapter.failed(error))

    def _has_app(self, ctx: Context) -> bool:
        """Return whether the client of a request can show the app, and the server offers it."""
        return self._profile.known_as is None and supports_apps(ctx)

    def _find_tool(self, ctx: Context, name: str) -> Tool | None:
        """Return the tool with a name that the client of a request may call, None without one."""
        tool = self._tools.get(name)
        if tool is None and self._has_app(ctx):
            return next((candidate for candidate in app_tools() if candidate.name == name), None)
        return tool

    async def list_prompts(self, _ctx: Context, _params: Any) -> types.ListPromptsResult:
        """Answer `prompts/list`."""
        return list_prompts(self._executor.tools)

    async def get_prompt(
        self, _ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Answer `prompts/get`.

        Raises MCPError if the prompt is not offered, Invalid if an argument is wrong.
        """
        return await get_prompt(self._executor, params)

    async def complete(
        self, _ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer `completion/complete` with up to 100 names of notes or tags.

        The arguments `topic` and `name` are completed by names, `tag` by tags; others get none.
        """
        argument = params.argument
        values: list[str] = []
        if argument.name in ("topic", "name"):
            values = await self._executor.run(
                lambda: self._resources.names(argument.value, _MAX_COMPLETIONS + 1)
            )
        elif argument.name == "tag":
            values = await self._executor.run(lambda: self._matching_tags(argument.value))

        completion = types.Completion(
            values=values[:_MAX_COMPLETIONS],
            total=len(values),
            has_more=len(values) > _MAX_COMPLETIONS,
        )
        return types.CompleteResult(completion=completion)

    def _matching_tags(self, prefix: str) -> list[str]:
        """Return the tags that begin with a prefix, the most frequent first.

        `prefix` may begin with `#`, and its case is ignored. Tags count the notes of all users, so
        the result is [] where those are hidden. Call it in a thread.
        """
        store = self._executor.store()
        if self._resources.hides_users(store):
            return []

        counts = store.tags()
        folded_prefix = prefix.lstrip("#").casefold()
        tags = [tag for tag in counts if tag.casefold().startswith(folded_prefix)]
        return sorted(tags, key=lambda tag: (-counts[tag], tag))


def _required_commit(meta: Mapping[str, Any] | None) -> str:
    """Return the commit that the answer to a request must include, or "" for any.

    `meta` is the `_meta` of the request.
    """
    commit = (meta or {}).get(_COMMIT)
    if isinstance(commit, str):
        return commit
    return ""


async def _handle_request(
    executor: StoreExecutor, ctx: Context, call_next: CallNext
) -> HandlerResult:
    """Handle a request of any method, as middleware of the SDK, and return the answer.

    Waits first for the commit that the request names. Errors outside the tools become MCPError;
    those that are bugs are logged, too. The structured content of an answer does not pass through
    the SDK, which would copy and check it twice: it is put back here.
    """
    ctx = replace(ctx, lifespan_context={})
    try:
        # For a tool, `answer_call` waits for the commit: its answer says if it is missing.
        if ctx.method != "tools/call":
            await _wait_for_commit(executor, _required_commit(ctx.meta))
        answer = await call_next(ctx)
    except SimplememError as error:
        message = line(error.message, 400)
        raise MCPError(types.INVALID_PARAMS, message, data=error_data(error)) from None
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        log.exception("%s failed", line(ctx.method, 60))
        message = f"internal error in simplemem ({type(error).__name__})"
        raise MCPError(types.INTERNAL_ERROR, message) from None

    if isinstance(answer, dict) and "structuredContent" in answer:
        answer["structuredContent"] = ctx.lifespan_context.get(_STRUCTURED, {})
    return answer


async def _record_client(clients: ClientLog, ctx: Context, call_next: CallNext) -> HandlerResult:
    """Record which client sends a request, as middleware of the SDK, and return the answer.

    The name that a client states in `initialize` is known from its next message on, so that request
    itself is not recorded: it would be one of a second client, without a name.
    """
    if ctx.method != "initialize":
        grant = grant_of(ctx)
        token_name = "" if grant is None else grant.name
        key = ClientKey(token_name, client_name(ctx))
        clients.record(key, is_tool_call=ctx.method == "tools/call")
    return await call_next(ctx)


async def _wait_for_commit(executor: StoreExecutor, commit: str) -> None:
    """Wait until the store includes a commit; "" means any.

    Raises Unavailable if the commit does not arrive, or the store cannot be opened.
    """
    if commit:
        await executor.run(lambda: executor.store().reach(commit))


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool: its arguments, who makes it, and what it may and must see.

    Attributes:
        client: The name and version that the client states.
        grant: What the token of the request allows; None without one.
        after: The commit that the answer must include; "" for any.
        session: The session that records what the client reads; None without one.
        is_by_person: Whether a person makes it, in a browser that is signed in.
    """

    arguments: Mapping[str, Any] | None
    client: str
    grant: Granted | None = None
    after: str = ""
    session: Session | None = None
    is_by_person: bool = False


def run_tool(tool: Tool, executor: StoreExecutor, call: ToolCall) -> Reply[Any]:
    """Run a tool in this thread, as far as the token of the call allows.

    The reply has the notices of the store, such as notes that are not indexed yet. Raises ReadOnly
    if the token may only read, Invalid if an argument is wrong, Unavailable if the store cannot be
    opened, and the errors of the tool, such as NotFound and Conflict.
    """
    arguments = call.arguments
    if call.grant is not None:
        may_write = call.grant.may("write") or call.grant.may("propose")
        if tool.writes and not may_write:
            message = f"{tool.name} writes, and this token may only read"
            raise ReadOnly(message, hint=_READ_ONLY_HINT)
        arguments = call.grant.restrict_arguments(arguments, tool.user_arguments)

    store = executor.store()
    store.extension.take_notices()  # of an earlier call in this thread

    validated = tool.adapter.read(tool, arguments)
    caller: Caller = {"who": _author(call.client, call.grant), "tool": tool.name}
    only_proposes = call.grant is not None and not call.grant.may("write")
    if call.is_by_person and not only_proposes:
        caller["kind"] = "human"
    if call.session is not None:
        caller["session"] = call.session.id
        caller["sources"] = call.session.sources()
    reply = tool(store, caller, validated, call.session)
    return replace(reply, notices=tuple(store.extension.take_notices()))


def _author(client: str, grant: Granted | None) -> str:
    """Return how the history names a caller: `TOKEN: CLIENT`, or one of them.

    Only the name of the token is verified. Without a token, no client can take a name that begins
    like a token's.
    """
    if grant is None:
        return client.replace(AUTHOR_SEPARATOR, ":")
    if not client:
        return grant.name
    return f"{grant.name}{AUTHOR_SEPARATOR}{client}"


def answer_call(tool: Tool, executor: StoreExecutor, call: ToolCall) -> types.CallToolResult:
    """Run a tool in this thread and return its answer. An error is an answer too.

    A change that became a proposal is none if the answer has fields that say so. Raises nothing. An
    error that is a bug is logged. The answer contains no path outside the vault and names no tool
    that the client lacks.
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

    error.hint = hint_for_tools(error.hint, executor.tools)
    text, data = tool.adapter.failed(error)
    # A proposal is no failure. A client that validates answers accepts this one only with data.
    is_proposal = isinstance(error, Proposed) and data is not None
    return _result(text, data, is_error=not is_proposal)


def _run_for_answer(tool: Tool, executor: StoreExecutor, call: ToolCall) -> types.CallToolResult:
    """Run a tool and return its answer, with notices that its text lacks, and with its commit.

    Waits first for the commit that the call names. Raises the errors of `run_tool`, and Unavailable
    if the commit does not arrive.
    """
    store = executor.store()
    if call.after:
        store.reach(call.after)
    commit = ""
    if not tool.writes:
        commit = store.commit()  # before the call, so that the answer includes it

    reply = run_tool(tool, executor, call)
    result = _result(reply.text, reply.data(), is_error=False)
    for notice in reply.notices:
        if notice not in reply.text:  # the format of some profiles has no field for it
            content = types.TextContent(type="text", text=line(notice, _MAX_NOTICE))
            result.content.append(content)

    if tool.writes:
        commit = executor.store().commit(written=True)
    if commit:
        result.meta = {_COMMIT: commit}
    return result


def _result(text: str, data: Data | None, *, is_error: bool = True) -> types.CallToolResult:
    """Return the answer of a tool in the form of the protocol: its text, and its data if any."""
    content: list[Any] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)
