"""An agent whose change needs review learns that it is a proposal, over every interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bare_client import Bare
from sdk_client import both, connected, run, text_of
from waiting import eventually

TEXT = "We use PostgreSQL.\n"
Write = Callable[[str, str | bytes], Path]

PROFILES: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("create_memory", {"name": "decisions/tea", "content": "Green."}),
    "server-memory": (
        "create_entities",
        {"entities": [{"name": "Tea", "entityType": "drink", "observations": ["Green."]}]},
    ),
    "basic-memory": (
        "write_note",
        {"title": "tea", "directory": "decisions", "content": "Green."},
    ),
    "anthropic-memory": (
        "memory",
        {"command": "create", "path": "/memories/decisions/tea.md", "file_text": "Green."},
    ),
}


@pytest.fixture
def reviewed(vault: Path, write: Write) -> Path:
    """A vault in which every change by an agent needs review."""
    write(".simplemem/config.toml", '[write]\nreview = ["/"]\n')
    write("decisions/database.md", TEXT)
    return vault


@both
@pytest.mark.parametrize("profile", PROFILES)
def test_the_answer_of_a_tool_says_that_the_change_is_a_proposal(
    reviewed: Path, mode: str, profile: str
) -> None:
    tool, arguments = PROFILES[profile]

    async def body() -> None:
        async with connected(reviewed, mode, profile) as client:
            result = await client.call_tool(tool, arguments)
            assert "proposal" in text_of(result)

    run(body)
    (proposal,) = (reviewed / "inbox").iterdir()
    assert "Green." in proposal.read_text()
    assert sorted(path.name for path in (reviewed / "decisions").iterdir()) == ["database.md"]


@both
def test_a_proposal_of_a_default_tool_is_no_error(reviewed: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(reviewed, mode) as client:
            await client.list_tools()  # the client checks answers with the schemas
            changes: list[tuple[str, dict[str, Any]]] = [
                ("create_memory", {"name": "new", "content": "x"}),
                ("update_memory", {"name": "database", "append": "x"}),
                ("change_tag", {"name": "database", "tags": {"done": True}}),
                ("move_memory", {"name": "database", "new_name": "db"}),
                ("delete_memory", {"name": "database"}),
            ]
            for tool, arguments in changes:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error
                assert result.structured_content["error"]["code"] == "proposed"
                assert result.structured_content["error"]["proposal"].startswith("inbox/")

    run(body)
    assert len(list((reviewed / "inbox").iterdir())) == 5
    assert (reviewed / "decisions/database.md").read_text() == TEXT


@both
def test_a_proposal_is_not_listed_among_the_changes_to_review(reviewed: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(reviewed, mode, tools="review") as client:
            await client.call_tool("update_memory", {"name": "database", "append": "x"})
            listed = text_of(await client.call_tool("review_changes", {}))
            assert listed == "There is nothing to review."

    run(body)


def test_a_box_that_is_ticked_while_a_server_runs_is_carried_out(reviewed: Path) -> None:
    with Bare(reviewed) as agent:
        agent.initialize()
        agent.call("update_memory", name="database", append="Backups run daily.")
        (proposal,) = (reviewed / "inbox").iterdir()
        agent.call("search_memories", query="backups")
        proposal.write_text(proposal.read_text().replace("[ ] Accept", "[x] Accept"))
        eventually(lambda: not proposal.exists())
        assert "Backups run daily." in (reviewed / "decisions/database.md").read_text()


def test_a_box_that_was_ticked_without_a_server_is_carried_out_at_its_start(
    reviewed: Path,
) -> None:
    with Bare(reviewed) as agent:
        agent.initialize()
        agent.call("update_memory", name="database", append="Backups run daily.")
    (proposal,) = (reviewed / "inbox").iterdir()
    proposal.write_text(proposal.read_text().replace("[ ] Decline", "[x] Decline"))
    with Bare(reviewed) as agent:
        agent.initialize()
        agent.call("search_memories", query="backups")
        eventually(lambda: not proposal.exists())
    assert (reviewed / "decisions/database.md").read_text() == TEXT


@both
def test_texts_for_a_daily_note_that_does_not_exist_are_in_the_proposals(
    reviewed: Path, mode: str
) -> None:
    async def body() -> None:
        async with connected(reviewed, mode) as client:
            await client.call_tool("update_memory", {"name": "daily", "append": "Order helium."})
            await client.call_tool("create_memory", {"name": "daily", "content": "Call Ida."})

    run(body)
    texts = "".join(path.read_text() for path in (reviewed / "inbox").iterdir())
    assert "Order helium." in texts
    assert "Call Ida." in texts
