"""Notes that the setting access.read_only protects: the page offers no change of them, and says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simplemem.store import open_store
from tests.web.conftest import Served
from tests.web.test_page import Browser

Write = Callable[[str, str | bytes], Path]
REASON = "the setting access.read_only allows no changes"
CHANGES = (">Edit<", ">Move<", ">Delete<", ">Undo<")


def test_a_read_only_note_has_no_buttons_that_change_it_but_the_reason(
    vault: Path, write: Write, serve: Callable[..., Served]
) -> None:
    with open_store(vault) as agent:
        version = agent.create("archive/old", "- [ ] Task.\n", who="claude-ai").version
        agent.create("tea", "Oolong.", who="claude-ai")
    write(".simplemem/config.toml", '[access]\nread_only = ["archive/"]\n')
    browser = Browser(serve("--vault", str(vault)))

    for path in ("/note/archive/old", "/history/archive/old", "/history/old", f"/review/{version}"):
        page = browser.get(path).body.decode()
        assert REASON in page, path
        assert not [button for button in CHANGES if button in page], path
    assert ">Keep<" in browser.get(f"/review/{version}").body.decode()
    for path in ("/move/archive/old", "/delete/old"):
        answer = browser.get(path)
        assert answer.status == 403 and REASON in answer.body.decode(), path
    page = browser.get("/edit/archive/old").body.decode()
    assert REASON in page
    assert "readonly>" in page and ">Save<" not in page

    page = browser.get("/note/tea").body.decode()
    assert REASON not in page
    assert ">Edit<" in page and ">Move<" in page and ">Delete<" in page
    home = browser.get("/").body.decode()
    assert home.count(REASON) == 1
    assert home.count(">Edit<") == home.count(">Undo<") == 1
