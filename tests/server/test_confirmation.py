"""With `write.confirm`, the user is asked before an agent deletes or rewrites most of a note."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import mcp_types as types
from sdk_client import both, connected, run, text_of

LONG = "word " * 60


def with_confirmation(vault: Path) -> Path:
    """Return a vault whose settings ask for confirmation, with a long note."""
    (vault / ".simplemem").mkdir(parents=True, exist_ok=True)
    (vault / ".simplemem" / "config.toml").write_text("[write]\nconfirm = true\n")
    (vault / "Heron.md").write_text(f"{LONG}\n")
    return vault


def answering(
    action: Literal["accept", "decline", "cancel"], questions: list[str]
) -> Callable[..., Any]:
    """Return a client's callback that records each question and answers it."""

    async def answer(_context: object, params: Any) -> types.ElicitResult:
        questions.append(params.message)
        return types.ElicitResult(action=action, content={} if action == "accept" else None)

    return answer


@both
def test_a_user_who_declines_keeps_the_note(vault: Path, mode: str) -> None:
    note = with_confirmation(vault) / "Heron.md"
    questions: list[str] = []

    async def body() -> None:
        answer = answering("decline", questions)
        async with connected(vault, mode, elicitation_callback=answer) as client:
            refused = await client.call_tool("delete_memory", {"name": "Heron"})
            assert refused.is_error
            assert "the user declined this change" in text_of(refused)

    run(body)
    assert questions == ["Delete Heron? It goes to the trash, and can be restored."]
    assert note.read_text() == f"{LONG}\n"


@both
def test_a_user_who_agrees_lets_the_note_go(vault: Path, mode: str) -> None:
    note = with_confirmation(vault) / "Heron.md"
    questions: list[str] = []

    async def body() -> None:
        answer = answering("accept", questions)
        async with connected(vault, mode, elicitation_callback=answer) as client:
            await client.call_tool("delete_memory", {"name": "Heron"})

    run(body)
    assert len(questions) == 1
    assert not note.exists()


@both
def test_only_a_rewrite_of_most_of_a_long_note_asks(vault: Path, mode: str) -> None:
    note = with_confirmation(vault) / "Heron.md"
    questions: list[str] = []

    async def body() -> None:
        answer = answering("decline", questions)
        async with connected(vault, mode, elicitation_callback=answer) as client:
            await client.call_tool("update_memory", {"name": "Heron", "append": "Seen."})
            assert questions == []
            await client.call_tool("read_memory", {"name": "Heron"})
            await client.call_tool("update_memory", {"name": "Heron", "content": "Short."})

    run(body)
    assert questions == ["Rewrite Heron? 61 of its 61 words would be removed."]
    assert "Seen." in note.read_text()


@both
def test_a_client_that_cannot_ask_is_not_held_up(vault: Path, mode: str) -> None:
    note = with_confirmation(vault) / "Heron.md"

    async def body() -> None:
        async with connected(vault, mode) as client:
            await client.call_tool("delete_memory", {"name": "Heron"})

    run(body)
    assert not note.exists()


@both
def test_without_the_setting_nobody_is_asked(vault: Path, mode: str) -> None:
    note = with_confirmation(vault) / "Heron.md"
    (vault / ".simplemem" / "config.toml").unlink()
    questions: list[str] = []

    async def body() -> None:
        answer = answering("decline", questions)
        async with connected(vault, mode, elicitation_callback=answer) as client:
            await client.call_tool("delete_memory", {"name": "Heron"})

    run(body)
    assert questions == []
    assert not note.exists()
