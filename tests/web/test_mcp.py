"""The official client over HTTP, in both generations of the protocol: every tool of every face, and sessions."""

from __future__ import annotations

import http.client
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from sdk_client import LEGACY, MODERN, both, run, text_of
from tool_calls import HARMLESS, put_back

from simplemem.profiles.registry import built_in_profiles
from tests.web.conftest import OWNER, Answer, Served, running

_ELSEWHERE = {"ingest_url"}  # asks another server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server with a vault for each face."""
    root = tmp_path_factory.mktemp("mcp")
    each = [
        part
        for name in built_in_profiles()
        for part in ("--vault", f"{name}={root / name}", "--profile", f"{name}={name}")
    ]
    for name in built_in_profiles():
        put_back_in(root / name)
    with running(root, "--sse", *each) as started:
        yield started


def put_back_in(vault: Path) -> None:
    vault.mkdir(exist_ok=True)
    for created_file in ("new.md", "moved.md"):
        (vault / created_file).unlink(missing_ok=True)
    put_back(vault)


@asynccontextmanager
async def connected(
    server: Served, mode: str, face: str = "default", token: str = OWNER
) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as web:
        wire = streamable_http_client(f"http://127.0.0.1:{server.port}/{face}/mcp", http_client=web)
        async with Client(wire, mode=mode) as client:
            yield client


@both
@pytest.mark.parametrize("face", built_in_profiles())
def test_every_tool_is_listed_and_called(server: Served, face: str, mode: str) -> None:
    root = server.config.parent

    async def body() -> None:
        async with connected(server, mode, face) as client:
            tools = (await client.list_tools()).tools
            assert tools
            for tool in tools:
                put_back_in(root / face)
                arguments = {
                    key: value
                    for key, value in HARMLESS.get(tool.name, {}).items()
                    if key in tool.input_schema["properties"]
                }
                result = await client.call_tool(tool.name, arguments)
                assert text_of(result).strip()
                if tool.name not in _ELSEWHERE:
                    assert not result.is_error, (tool.name, text_of(result))

    run(body)


def test_who_listens_hears_what_others_change(server: Served) -> None:
    """2026: a stream of its own, over which word comes until it is closed."""

    async def body() -> None:
        async with (
            connected(server, MODERN) as client,
            client.listen(resource_subscriptions=["memory://heard"]) as heard,
        ):
            assert (
                server.ask("PUT", "/default/api/v1/memories/heard", {"content": "one"}).status < 300
            )
            async for event in heard:
                assert event == ResourceUpdated(uri="memory://heard")
                break

    run(body)


@both
def test_over_http_an_update_does_not_replace_an_edit_made_since_the_client_read_the_note(
    server: Served, mode: str
) -> None:
    note = server.config.parent / "default" / f"edited {mode}.md"
    note.write_text("Oolong.\n")
    replace = {"name": note.stem, "content": "Green tea."}

    async def body() -> None:
        async with connected(server, mode) as client:
            await client.call_tool("read_memory", {"name": note.stem})
            note.write_text("Oolong.\nIda prefers jasmine.\n")
            refused = await client.call_tool("update_memory", replace)
            assert refused.structured_content["error"]["code"] == "conflict"
            assert "jasmine" in note.read_text()

            await client.call_tool("read_memory", {"name": note.stem})
            assert not (await client.call_tool("update_memory", replace)).is_error
            assert note.read_text() == "Green tea.\n"

    run(body)


def test_two_http_sessions_of_one_token_do_not_share_what_they_read(server: Served) -> None:
    note = server.config.parent / "default" / "shared.md"
    note.write_text("Oolong.\n")
    first, second = Session(server), Session(server)
    read = {"name": "read_memory", "arguments": {"name": "shared"}}
    first.post("tools/call", read)
    note.write_text("Oolong.\nIda prefers jasmine.\n")
    second.post("tools/call", read)
    replace = {"name": "update_memory", "arguments": {"name": "shared", "content": "Green tea."}}
    assert b'"conflict"' in first.post("tools/call", replace).body
    assert note.read_text() == "Oolong.\nIda prefers jasmine.\n"
    assert b'"conflict"' not in second.post("tools/call", replace).body
    assert note.read_text() == "Green tea.\n"


def test_old_clients_speak_over_sse(server: Served) -> None:
    async def body() -> None:
        wire = sse_client(
            f"http://127.0.0.1:{server.port}/default/sse",
            headers={"Authorization": f"Bearer {OWNER}"},
        )
        async with Client(wire, mode=LEGACY) as client:
            assert "search_memories" in {tool.name for tool in (await client.list_tools()).tools}
            note = {"name": "by sse", "content": "an old client was here", "overwrite": True}
            assert not (await client.call_tool("create_memory", note)).is_error

    run(body)
    assert server.ask("GET", "/default/api/v1/memories/by%20sse").status == 200
    assert server.ask("GET", "/default/sse", token=None).status == 401
    assert server.ask("POST", "/default/messages?session_id=" + "0" * 32, {}).status == 404


class Session:
    """A session of 2025, in the words of the wire."""

    def __init__(self, server: Served, token: str = OWNER) -> None:
        self._server, self._token = server, token
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        self.id = ""
        self.id = self.post("initialize", about).headers["mcp-session-id"]
        self.post("notifications/initialized", None)

    def _headers(self) -> dict[str, str]:
        sent = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        return sent | ({"Mcp-Session-Id": self.id} if self.id else {})

    def post(self, method: str, params: Any) -> Answer:
        message = {"jsonrpc": "2.0", "method": method} | (
            {} if params is None else {"id": 1, "params": params}
        )
        return self._server.ask(
            "POST", "/default/mcp", message, token=self._token, headers=self._headers()
        )

    def end(self) -> Answer:
        return self._server.ask(
            "DELETE", "/default/mcp", token=self._token, headers=self._headers()
        )

    @contextmanager
    def stream(self, last: str = "") -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """What the server says by itself: the id and the message of each event."""
        wire = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)
        more = {"Authorization": f"Bearer {self._token}"} | (
            {"Last-Event-ID": last} if last else {}
        )
        wire.request("GET", "/default/mcp", headers=self._headers() | more)
        answer = wire.getresponse()
        assert answer.status == 200
        yield _messages(answer)
        answer.close()
        wire.close()


def _messages(answer: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
    ident = ""
    for line in answer:
        key, _, value = line.decode().rstrip("\r\n").partition(": ")
        ident = value if key == "id" else ident
        if key == "data" and value:
            yield ident, json.loads(value)


def test_a_session_hears_what_came_while_its_connection_was_gone(server: Served) -> None:
    def put(content: str) -> None:
        assert (
            server.ask("PUT", "/default/api/v1/memories/watched", {"content": content}).status < 300
        )

    put("one")
    session, other = Session(server), Session(server)
    for client in (session, other):
        assert client.post("resources/subscribe", {"uri": "memory://watched"}).status == 200
    with session.stream() as heard:
        put("two")
        ident, message = next(heard)
        assert message["params"]["uri"] == "memory://watched"
    put("three, and nobody listens")
    with session.stream(last=ident) as heard:
        again, message = next(heard)
        assert again != ident and message["method"] == "notifications/resources/updated"
    with other.stream() as heard:
        put("four")
        ident, _ = next(heard)
    for _ in range(80):  # more than is kept of a session
        other.post("ping", {})
    with other.stream(last=ident) as heard:
        put("five")
        assert next(heard)[1]["params"]["uri"] == "memory://watched"


def test_a_session_is_its_token_s_and_ends_when_it_says(server: Served) -> None:
    session = Session(server)
    stranger = Session(server, server.new_token("stranger", "--write"))
    ident, stranger.id = stranger.id, session.id
    assert stranger.post("ping", {}).status == 404 and stranger.end().status == 404
    assert session.post("ping", {}).status == 200
    assert session.end().status == 200
    assert session.post("ping", {}).status == 404
    stranger.id = ident
    assert stranger.post("ping", {}).status == 200


def test_a_token_that_opens_many_sessions_loses_its_oldest_idle_one_and_nobody_else_does(
    server: Served,
) -> None:
    reader = server.new_token("opener")
    of_owner, in_use, idle = Session(server), Session(server, reader), Session(server, reader)
    with in_use.stream():
        latest = [Session(server, reader) for _ in range(110)][-1]
        assert idle.post("ping", {}).status == 404
        assert latest.post("ping", {}).status == 200
        assert in_use.post("ping", {}).status == 200
    assert of_owner.post("ping", {}).status == 200
    assert Session(server).post("ping", {}).status == 200


@pytest.mark.slow
def test_only_existing_notes_can_be_subscribed_to_and_one_session_cannot_use_up_the_subscriptions(
    server: Served,
) -> None:
    folder = server.config.parent / "default" / "many"
    folder.mkdir()
    for number in range(501):
        (folder / f"{number}.md").write_text("one of many")

    def subscribe(session: Session, uri: str) -> Any:
        answer = session.post("resources/subscribe", {"uri": uri})
        return json.loads(answer.body.decode().rpartition("data: ")[2])

    greedy, other = Session(server, server.new_token("greedy")), Session(server)
    for uri in ("memory://invented", "memory://many/502", "memory://many"):
        assert "no note called" in subscribe(greedy, uri)["error"]["message"]
    answers = [subscribe(greedy, f"memory://many/{number}") for number in range(501)]
    assert ["error" in answer for answer in answers] == [False] * 500 + [True]
    assert "memory://changes" in answers[-1]["error"]["message"]
    assert "result" in subscribe(greedy, "memory://many/7")  # it has this one already
    assert "result" in subscribe(other, "memory://many/500")
    greedy.post("resources/unsubscribe", {"uri": "memory://many/7"})
    assert "result" in subscribe(greedy, "memory://many/500")


def test_what_is_no_message_is_refused_in_the_words_of_the_protocol(server: Served) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    for body in (
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": 3}',
        b"\xff",
    ):
        answer = server.ask(
            "POST", "/default/mcp", body, headers=accept | {"Content-Type": "application/json"}
        )
        assert answer.status in (400, 415) and "error" in answer.data, (body, answer)
    assert server.ask("POST", "/default/mcp", b"{}", headers={"Accept": "text/html"}).status in (
        400,
        406,
        415,
    )
    assert server.ask("PUT", "/default/mcp", {}).status == 405
    assert server.ask("GET", "/nowhere/mcp").status == 404


def test_without_sessions_any_server_of_a_vault_answers(serve: Callable[..., Served]) -> None:
    """As behind a balancer of load: what one server is told, another finds, and neither remembers who asked."""
    one, other = serve("--stateless"), serve("--stateless")
    accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

    def call(server: Served, method: str, params: Any) -> Answer:
        return server.ask(
            "POST",
            "/mcp",
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            headers=accept,
        )

    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    greeted = call(one, "initialize", about)
    assert greeted.status == 200 and "mcp-session-id" not in greeted.headers
    creation = {"name": "create_memory", "arguments": {"name": "shared", "content": "by the first"}}
    assert b"shared" in call(one, "tools/call", creation).body
    assert (
        b"by the first"
        in call(other, "tools/call", {"name": "read_memory", "arguments": {"name": "shared"}}).body
    )
