"""Ask the user before a tool deletes or rewrites much, if the setting `write.confirm` asks for it.

The client asks the user by elicitation. A client of the 2026 protocol gets an interim result, and
repeats its call with the user's answer. Clients that cannot ask are not held up: every change can
be undone.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from simplemem.errors import ReadOnly
from simplemem.tools.render import line
from simplemem.tools.tool import Tool

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from simplemem.server.executor import StoreExecutor

    Context = ServerRequestContext[Any, Any]

_KEY: Final = "confirm"  # of the only request in an interim result
_MAX_ARGUMENTS: Final = 200  # characters
_NO_FIELDS: Final[types.ElicitRequestedSchema] = {"type": "object", "properties": {}}


def can_ask(ctx: Context) -> bool:
    """Return whether the client of a request can ask its user."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def question_of(tool: Tool, executor: StoreExecutor, arguments: dict[str, Any] | None) -> str:
    """Return what to ask the user before a call of a tool; "" for nothing.

    Call it in a thread. Raises Invalid if an argument is wrong, Unavailable if the store cannot be
    opened, and NotFound or Ambiguous for a note that the tool would not find either.
    """
    store = executor.store()
    if not store.settings.write.confirm:
        return ""
    if tool.question is not None:
        return tool.question(store, dict(tool.adapter.read(tool, arguments)))
    if tool.deletes:
        shown = json.dumps(arguments or {}, ensure_ascii=False)
        return f"{tool.title}? {line(shown, _MAX_ARGUMENTS)}"
    return ""


async def ask_user(
    ctx: Context, params: types.CallToolRequestParams, question: str
) -> types.InputRequiredResult | None:
    """Ask the user a question, and return None if the answer is yes.

    Returns the interim result with the question if the client repeats the call with the answer.
    Raises ReadOnly if the user declines.
    """
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=question, requested_schema=_NO_FIELDS)
    )
    if ctx.session.can_send_request:
        answer = await ctx.session.elicit_form(question, _NO_FIELDS, ctx.request_id)
        _check_answer(answer)
        return None

    # The state says which question was answered: the note may have changed since.
    state = hashlib.sha256(question.encode()).hexdigest()
    answer_given = (params.input_responses or {}).get(_KEY)
    if isinstance(answer_given, types.ElicitResult) and params.request_state == state:
        _check_answer(answer_given)
        return None
    return types.InputRequiredResult(input_requests={_KEY: request}, request_state=state)


def _check_answer(answer: types.ElicitResult) -> None:
    """Raise ReadOnly unless the user has agreed."""
    if answer.action != "accept":
        raise ReadOnly("the user declined this change", hint="Ask the user what to do instead.")
