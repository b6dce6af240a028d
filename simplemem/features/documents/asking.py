"""Let the chat model do a task, and say why there is no answer if it gives none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.providers.api import ChatModel

AnswerT = TypeVar("AnswerT")


class ModelAnswer(NamedTuple, Generic[AnswerT]):
    """The answer of the chat model to a task, or why there is none."""

    answer: AnswerT | None  # None if it is empty or the model failed
    method: str  # the name of the model, "none" without an answer
    reason: str  # why there is no answer; "" if there is one


def ask_model(chat: ChatModel | None, ask: Callable[[ChatModel], AnswerT]) -> ModelAnswer[AnswerT]:
    """Let the chat model do the task `ask`, and return its answer.

    An error of the model, or that there is no model (None), is the reason in the answer and is not
    raised.
    """
    if chat is None:
        return ModelAnswer(None, "none", "no model is configured")
    try:
        answer = ask(chat)
    except SimplememError as error:
        reason = f"the model returned no usable answer: {error.message}"
        return ModelAnswer(None, "none", reason)
    if not answer:
        return ModelAnswer(None, "none", "the model returned nothing usable")
    return ModelAnswer(answer, chat.method, "")
