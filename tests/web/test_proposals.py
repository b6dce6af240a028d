"""A token with the right `propose` proposes each change, and changes nothing by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from tests.web.conftest import Served, Session

Write = Callable[[str, str | bytes], Path]


def test_a_token_that_may_only_propose_changes_nothing_over_rest_or_mcp(
    vault: Path, write: Write, serve: Callable[..., Served]
) -> None:
    note = write("tea.md", "Oolong.\n")
    server = serve("--vault", str(vault))
    token = server.new_token("reviewer", "--propose")

    appended = server.api("PATCH", "/memories/tea", {"append": "Milk."}, token=token)
    assert appended.status == 202
    assert appended.data["code"] == "proposed"
    proposal = vault / f"{appended.data['proposal']}.md"
    assert "Milk." in proposal.read_text()
    assert "who: reviewer" in proposal.read_text()

    session = Session(server, token=token)
    answer = session.ask("tools/call", {"name": "delete_memory", "arguments": {"name": "tea"}})
    assert "proposal" in answer
    assert note.read_text() == "Oolong.\n"
    assert len(list((vault / "inbox").iterdir())) == 2

    changed = server.api("PATCH", "/memories/tea", {"append": "Sugar."})
    assert changed.status == 200
    assert "Sugar." in note.read_text()


def test_a_token_for_a_folder_proposes_changes_there_and_sees_no_proposal(
    vault: Path, write: Write, serve: Callable[..., Served]
) -> None:
    note = write("shared/tea.md", "Oolong.\n")
    write("private/diary.md", "Secret.\n")
    server = serve("--vault", str(vault))
    token = server.new_token("guest", "--propose", "--folder", "shared")

    proposed = server.api("PATCH", "/memories/shared/tea", {"append": "Milk."}, token=token)
    assert proposed.status == 202
    name = proposed.data["proposal"]
    assert (vault / f"{name}.md").exists()
    assert note.read_text() == "Oolong.\n"
    assert server.api("GET", f"/memories/{quote(name)}", token=token).status == 404
    assert server.api("DELETE", "/memories/private/diary", token=token).status == 404
    created = {"name": "private/new", "content": "x"}
    assert server.api("POST", "/memories", created, token=token).status == 403
    assert len(list((vault / "inbox").iterdir())) == 1
