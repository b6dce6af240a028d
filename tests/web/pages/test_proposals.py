"""What agents propose is listed in the inbox, to accept or decline."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.web.conftest import Served
from tests.web.test_page import Browser

Write = Callable[[str, str | bytes], Path]


def test_proposals_are_accepted_and_declined_in_the_inbox(
    vault: Path, write: Write, serve: Callable[..., Served]
) -> None:
    note = write("tea.md", "Oolong.\n")
    server = serve("--vault", str(vault))
    token = server.new_token("reviewer", "--propose")
    browser = Browser(server)
    texts = {"accept": "Milk.", "decline": "<b>Salt</b>."}
    for decision, text in texts.items():
        answer = server.api("PATCH", "/memories/tea", {"append": text}, token=token)
        name = answer.data["proposal"]
        page = browser.get("/").body.decode()
        assert ">Accept<" in page and ">Decline<" in page and "<b>" not in page
        assert name in page

        answer = browser.post("/proposals", name=name, decision=decision)
        assert answer.status == 303
        page = browser.get(answer.headers["location"]).body.decode()
        assert f"The proposal {name} was" in page and ">Accept<" not in page

        assert "No agent has changed a note yet" in page

    assert "Milk." in note.read_text()
    assert "Salt" not in note.read_text()
    assert browser.post("/proposals", name="none", decision="accept").status == 404
    assert browser.post("/proposals", name="none", decision="burn").status == 400
    reader = Browser(server, server.new_token("reader"))
    assert reader.post("/proposals", name="none", decision="accept").status == 403


def test_an_accepted_proposal_is_undone_as_one_step_and_proposed_again(
    vault: Path, write: Write, serve: Callable[..., Served]
) -> None:
    note = write("tea.md", "Oolong.\n")
    server = serve("--vault", str(vault))
    token = server.new_token("reviewer", "--propose")
    browser = Browser(server)
    answer = server.api("PATCH", "/memories/tea", {"append": "Milk."}, token=token)
    name = answer.data["proposal"]
    for decision in ("accept", "decline"):
        decided = browser.post("/proposals", name=name, decision=decision)
        page = browser.get(decided.headers["location"]).body.decode()
        [version] = re.findall(r'name="version" value="(v\d+)">Undo this decision<', page)

        undone = browser.post("/undo", version=version)
        page = browser.get(undone.headers["location"]).body.decode()
        assert note.read_text() == "Oolong.\n"
        assert name in page and ">Accept<" in page and "Undo this decision" not in page
