"""The page of agents: tokens are created, used and revoked, and clients are listed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from tests.web.conftest import OWNER, Served, Session
from tests.web.test_page import Browser


def page_of(browser: Browser) -> str:
    """Return the page of agents, with each run of blanks as one space."""
    return " ".join(browser.get("/agents").body.decode().split())


def new_token(browser: Browser, **fields: str) -> str:
    """Create a token on the page, and return it."""
    answer = browser.post("/agents/new", **fields)
    assert answer.status == 200, answer.body
    assert answer.headers["cache-control"] == "no-store"
    token = re.search(r'id="new-token">([^<]+)<', answer.body.decode())
    assert token is not None
    return token[1]


def test_a_token_made_on_the_page_has_the_rights_and_limits_of_the_form(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    server.api("PUT", "/memories/people/ada", {"content": "Ada flies."})
    server.api("PUT", "/memories/secret", {"content": "Nobody knows."})
    browser = Browser(server)
    token = new_token(browser, name="laptop", folder="people", days="30", calls="600")

    assert server.api("GET", "/memories/people/ada", token=token).status == 200
    assert server.api("GET", "/memories/secret", token=token).status == 404
    change = server.api("PUT", "/memories/people/ada", {"content": "x"}, token=token)
    assert change.status == 403

    page = page_of(browser)
    assert "<td>laptop</td><td>read</td><td>folders people/; 600 calls per minute</td>" in page
    assert token not in page


def test_a_token_made_on_the_page_may_only_propose_changes(serve: Callable[..., Served]) -> None:
    server = serve()
    server.api("PUT", "/memories/tea", {"content": "Oolong."})
    browser = Browser(server)
    assert 'name="propose"' in page_of(browser)
    both = browser.post("/agents/new", name="reviewer", write="1", propose="1")
    assert both.status == 400
    assert "exclude each other" in both.body.decode()

    token = new_token(browser, name="reviewer", propose="1")
    change = server.api("PATCH", "/memories/tea", {"append": "Milk."}, token=token)
    assert change.status == 202
    assert "Milk." not in str(server.api("GET", "/memories/tea").data)
    assert "<td>reviewer</td><td>read, propose</td>" in page_of(browser)


def test_the_list_shows_when_a_token_was_used_last_also_after_a_restart(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    browser = Browser(server)
    token = new_token(browser, name="laptop")
    assert "<td>never</td><td>never</td>" in page_of(browser)

    server.api("GET", "/memories", token=token)
    today = time.strftime("%Y-%m-%d", time.gmtime())
    used = rf"<td>laptop</td>.*?<td>never</td><td>{today} \d\d:\d\d</td>"
    assert re.search(used, page_of(browser))

    server.end()
    assert re.search(used, page_of(Browser(serve())))


def test_a_revoked_token_is_refused_at_once(serve: Callable[..., Served]) -> None:
    server = serve()
    browser = Browser(server)
    token = new_token(browser, name="laptop", write="1")
    assert server.api("GET", "/memories", token=token).status == 200

    assert browser.post("/agents/revoke", name="laptop").status == 303
    assert server.api("GET", "/memories", token=token).status == 401
    assert "<td>laptop</td>" not in page_of(browser)


def test_clients_are_listed_with_their_token_and_their_calls(serve: Callable[..., Served]) -> None:
    server = serve()
    browser = Browser(server)
    session = Session(server, token=new_token(browser, name="laptop"))
    session.ask("tools/call", {"name": "list_memories", "arguments": {}})

    page = page_of(browser)
    assert re.search(r"<td>t 1</td><td>laptop</td>.*?<td>1</td>", page)
    assert "Open MCP sessions: 1." in page
    assert "<td>unknown</td>" not in page


def test_the_page_says_how_to_connect_with_the_address_that_the_browser_used(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    page = page_of(Browser(server))
    assert f"--http http://127.0.0.1:{server.port}/mcp" in page
    assert OWNER not in page


def test_wrong_fields_create_no_token(serve: Callable[..., Served]) -> None:
    server = serve()
    browser = Browser(server)
    wrong: list[dict[str, str]] = [
        {"name": ""},
        {"name": "owner"},
        {"name": "a", "calls": "-1"},
        {"name": "a", "days": "soon"},
        {"name": "a", "folder": "../secrets"},
        {"name": "a", "kilobytes": "9" * 400},
    ]
    for fields in wrong:
        assert browser.post("/agents/new", **fields).status == 400, fields
    assert "There is only the owner's token." in page_of(browser)


def test_tokens_are_for_unlimited_administrators_only(serve: Callable[..., Served]) -> None:
    server = serve()
    writer = Browser(server, server.new_token("writer", "--write"))
    limited = Browser(server, server.new_token("limited", "--admin", "--folder", "people"))
    for browser in (writer, limited):
        assert browser.get("/agents").status == 403
        assert browser.post("/agents/new", name="more", admin="1").status == 403
        assert browser.post("/agents/revoke", name="writer").status == 403

    owner = Browser(server)
    assert owner.post("/agents/new", origin="http://evil.example", name="a").status == 403
    assert owner.post("/agents/revoke", origin=None, name="writer").status == 403


def test_an_empty_vault_shows_three_ways_to_connect_with_its_real_address(
    serve: Callable[..., Served],
) -> None:
    server = serve()
    page = " ".join(Browser(server).get("/").body.decode().split())
    address = f"http://127.0.0.1:{server.port}"
    assert "The vault is empty" in page
    assert f"simplemem connect claude-code --http {address}/mcp" in page
    assert f"{address}/mcp Authorization: Bearer TOKEN" in page
    assert f"{address}/api/v1/memories" in page

    server.tool("create_memory", name="Heron", content="Grey.")
    assert "simplemem connect" not in Browser(server).get("/").body.decode()
