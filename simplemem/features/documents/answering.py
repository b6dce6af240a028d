"""Let the chat model answer a question from the hits of a recall."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from simplemem.features.documents.asking import ModelAnswer, ask_model
from simplemem.features.documents.hits import Hit
from simplemem.features.documents.service import DocumentService

if TYPE_CHECKING:
    from simplemem.providers.api import ChatModel

_MAX_HITS: Final = 10  # hits that the model gets


def write_answer(
    documents: DocumentService,
    question: str,
    hits: Sequence[Hit],
) -> ModelAnswer[str]:
    """Let the chat model answer a question from the best hits, without those that are private.

    The answer is a text, or None. Without a model or without hits there is no reason for that. An
    error of the model is a reason and is not raised.
    """
    chat = documents.chat
    if chat is None or not hits:
        return ModelAnswer(None, "none", "")

    private_paths = documents.extension.private_among(hit.path for hit in hits)
    memories: list[tuple[str, datetime | None]] = []
    for hit in hits:
        if hit.path in private_paths:
            continue
        stated_at = hit.fact.valid_from if hit.fact is not None else None
        memories.append((_text_with_marks(hit), stated_at))

    def answer(model: ChatModel) -> str:
        # Imported here, since it is not needed without a model.
        from simplemem.features.facts import language_model

        return language_model.answer(documents, model, question, memories[:_MAX_HITS])

    return ask_model(chat, answer)


def _text_with_marks(hit: Hit) -> str:
    """Return the text of a hit, followed by the days since when it is outdated or disputed."""
    marks: list[str] = []
    outdated = hit.result.get("outdated")
    if outdated:
        marks.append(f"outdated since {outdated[:10]}")
    disputed = hit.result.get("disputed")
    if disputed:
        marks.append(f"disputed since {disputed[:10]}")

    text = hit.result["text"]
    if not marks:
        return text
    return f"{text} ({', '.join(marks)})"
