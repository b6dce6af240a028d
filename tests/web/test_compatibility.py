"""The addresses of Remembrances and Supermemento to the letter, and tools without MCP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import OWNER, Served, running

API, HOOK = "/api/v1", "/ingest/webhook"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("contracts")
    (root / "vault" / "kb").mkdir(parents=True)
    with running(
        root, "--profile", "remembrances", "--knowledge-base", str(root / "vault" / "kb")
    ) as served:
        yield served


def add(server: Served, content: str, user: str) -> str:
    """A memory, by its id."""
    added = server.ask("POST", f"{API}/memory", {"content": content, "user_id": user})
    assert added.status == 202 and added.data["status"] == "memory received for processing"
    ident: str = added.data["events"][0]["id"]
    return ident


def found_memories(server: Served, query: str, user: str, token: str = OWNER) -> list[str]:
    found = server.ask(
        "POST", f"{API}/memory/search", {"query": query, "user_id": user}, token=token
    )
    assert found.status == 200 and isinstance(found.data["results"], str)
    return [row["memory"] for row in found.data["memories"]]


def test_what_is_told_is_found_changed_and_deleted(server: Served) -> None:
    ident = add(server, "I live in Bergen", "alex")
    assert found_memories(server, "where do I live", "alex") == ["I live in Bergen"]
    assert found_memories(server, "where do I live", "bob") == []
    changed = server.ask(
        "PUT", f"{API}/memory/{ident}", {"content": "I live in Oslo", "user_id": "alex"}
    )
    assert (changed.status, changed.data) == (200, {"status": "memory updated"})
    assert found_memories(server, "where do I live", "alex") == ["I live in Oslo"]
    deleted = server.ask("DELETE", f"{API}/memory/{ident}?user_id=alex")
    assert (deleted.status, deleted.body) == (204, b"")
    assert server.ask("DELETE", f"{API}/memory/{ident}?user_id=alex").problem["code"] == "not_found"
    assert server.ask("PUT", f"{API}/memory/{ident}", {"content": "x"}).status == 404


@pytest.mark.parametrize("query", ["", "?user_id=dora"])
def test_a_long_memory_is_changed_and_deleted_by_the_id_of_its_document_or_of_a_passage(
    server: Served, query: str
) -> None:
    content = "The committee met for an hour, and Gudrun brought the marmalade. " * 10
    added = server.ask("POST", f"{API}/memory", {"content": content, "user_id": "dora"})
    document = added.data["document"]
    changed = server.ask(
        "PUT", f"{API}/memory/{document}:13{query}", {"content": "Ragnar mended the weathervane."}
    )
    assert changed.status == 200 and changed.headers["etag"]
    assert found_memories(server, "who mended the weathervane", "dora") == [
        "Ragnar mended the weathervane."
    ]
    assert (
        server.ask(
            "DELETE", f"{API}/memory/{document}{query}", If_Match=changed.headers["etag"]
        ).status
        == 204
    )
    assert found_memories(server, "who mended the weathervane", "dora") == []
    assert server.ask("DELETE", f"{API}/memory/{document}{query}").status == 404


def test_whose_it_is_need_not_be_said_of_an_id(server: Served) -> None:
    ident = add(server, "I play the oboe", "una")
    assert server.ask("PUT", f"{API}/memory/{ident}", {"content": "I play the cello"}).status == 200
    assert found_memories(server, "what do I play", "una") == ["I play the cello"]
    assert (
        server.ask("PUT", f"{API}/memory/{ident}", {"content": "x", "user_id": "bob"}).status == 404
    )
    assert server.ask("DELETE", f"{API}/memory/{ident}").status == 204


def test_a_changed_memory_is_a_conflict_for_who_read_it_before(server: Served) -> None:
    ident = add(server, "I drive a Volvo", "vera")
    first = server.ask("PUT", f"{API}/memory/{ident}", {"content": "I drive a Saab"}).headers[
        "etag"
    ]
    second = server.ask(
        "PUT", f"{API}/memory/{ident}", {"content": "I drive a Fiat"}, If_Match=first
    )
    assert second.status == 200 and second.headers["etag"] != first
    for method in ("PUT", "DELETE"):
        refused = server.ask(
            method, f"{API}/memory/{ident}", {"content": "I drive a Lada"}, If_Match=first
        )
        assert refused.status == 409 and refused.problem["code"] == "conflict"
    assert found_memories(server, "what do I drive", "vera") == ["I drive a Fiat"]


def test_a_token_bound_to_a_user_speaks_for_that_user(server: Served) -> None:
    own, other = add(server, "I like olives", "ida"), add(server, "I like anchovies", "olaf")
    ida = server.new_token("ida", "--write", "--user", "ida")
    assert (
        server.ask("PUT", f"{API}/memory/{own}", {"content": "I like capers"}, token=ida).status
        == 200
    )
    assert found_memories(server, "what do I like", "ida", ida) == ["I like capers"]
    unsaid = server.ask("POST", f"{API}/memory/search", {"query": "what do I like"}, token=ida)
    assert [row["memory"] for row in unsaid.data["memories"]] == ["I like capers"]
    refused = server.ask(
        "POST", f"{API}/memory", {"content": "I like ham", "user_id": "olaf"}, token=ida
    )
    assert refused.status == 400
    for method in ("PUT", "DELETE"):
        hidden = server.ask(method, f"{API}/memory/{other}", {"content": "x"}, token=ida)
        unknown_note = server.ask(
            method, f"{API}/memory/{'x' * len(other)}", {"content": "x"}, token=ida
        )
        assert hidden.status == unknown_note.status == 404
        assert hidden.body.replace(other.encode(), b"") == unknown_note.body.replace(
            b"x" * len(other), b""
        )
    assert server.ask("POST", f"{API}/kb/query", {"query": "x"}, token=ida).status == 404


def test_the_knowledge_base_is_written_and_asked(server: Served) -> None:
    text = {"file_path": "plan.md", "content": "# Plan\n\nThe launch is in May.\n"}
    written = server.ask("PUT", f"{API}/kb/document", text)
    assert written.status == 202 and written.data["status"] == "document update accepted"
    found = server.ask("POST", f"{API}/kb/query", {"query": "when is the launch?"})
    assert found.status == 200 and {"content", "source", "score"} <= found.data["results"][0].keys()
    assert found.data["results"][0]["source"] == "plan.md"
    for outside in ("../plan.md", "/etc/plan.md", "a/../../plan.md", "plan.txt", ""):
        refused = server.ask("PUT", f"{API}/kb/document", {**text, "file_path": outside})
        assert refused.status == 400 and refused.problem["code"] == "invalid"


BAD: list[tuple[str, str, Any, int]] = [
    ("POST", f"{API}/memory", {"content": "I am here"}, 400),
    ("POST", f"{API}/memory", {"user_id": "alex"}, 400),
    ("POST", f"{API}/memory", {"content": " ", "user_id": "alex"}, 422),
    ("POST", f"{API}/memory", {"content": "x" * 1_000_001, "user_id": "alex"}, 413),
    ("POST", f"{API}/memory", {"content": "x", "user_id": ["alex"]}, 400),
    ("POST", f"{API}/memory", b"{", 400),
    ("POST", f"{API}/memory/search", {"user_id": "alex"}, 400),
    ("POST", f"{API}/memory/search", {"query": "x", "user_id": " "}, 400),
    ("PUT", f"{API}/memory/nothing", {"content": "x", "user_id": {"a": 1}}, 400),
    ("PUT", f"{API}/memory/nothing", {"content": "x", "user_id": "alex"}, 404),
    ("DELETE", f"{API}/memory/nothing", None, 404),
    ("POST", f"{API}/kb/query", {}, 400),
    ("POST", HOOK, b"no json", 400),
    ("POST", HOOK, {"container_tag": "alex"}, 422),
    ("POST", HOOK, {"content": ""}, 422),
    ("POST", HOOK, {"content": "x", "metadata": "y"}, 400),
    ("POST", HOOK, {"content": "x", "metadata": {"a": {"b": {}}}}, 400),
    ("POST", HOOK, {"content": "x" * (5 * 1024 * 1024)}, 413),
    ("POST", "/mcp/tools/call", {"arguments": {}}, 400),
    ("POST", "/mcp/tools/call", {"name": "nothing"}, 404),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), BAD)
def test_bad_input_has_the_code_of_the_contract(
    server: Served, method: str, path: str, body: Any, status: int
) -> None:
    answer = server.ask(method, path, body, Content_Type="application/json")
    assert (answer.status, bool(answer.problem["detail"])) == (status, True)


def test_health_tells_what_the_originals_tell(server: Served) -> None:
    for path in ("/health", f"{API}/health"):
        answer = server.ask("GET", path, token=None)
        assert (
            answer.status == 200
            and answer.data["status"] == "ok"
            and answer.data["database"] == "connected"
        )
    assert server.ask("GET", "/health", token=None).data["neo4j"] == "not used"


def test_health_says_when_a_vault_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()  # a folder where the index should be
    arguments = ["--vault", str(tmp_path / "vault"), "--db", str(tmp_path / "index")]
    server = Served(arguments, tmp_path / "config", {"SIMPLEMEM_EMBED_PROVIDER": "none"})
    try:
        answer = server.ask("GET", "/health", token=None)
        expected = {"status": "degraded", "neo4j": "not used", "database": "not connected"}
        assert (answer.status, answer.data) == (503, expected)
    finally:
        server.clear()


def test_a_webhook_takes_a_document(server: Served) -> None:
    sent = {
        "content": "The invoice is due in June.",
        "container_tag": "acme",
        "metadata": {"from": "crm", "Scope": "bob"},
    }
    accepted = server.ask("POST", HOOK, {**sent, "title": "Invoice 7"}, token=None, X_API_Key=OWNER)
    assert accepted.status == 202 and accepted.data == {
        "status": "queued",
        "id": accepted.data["id"],
    }
    note = (server.config.parent / "vault" / "documents" / "acme" / "Invoice 7.md").read_text()
    assert f"id: {accepted.data['id']}" in note and "from: crm" in note and "bob" not in note
    assert server.ask("POST", HOOK, sent).status == 202
    assert server.ask("POST", HOOK, sent, token=None).status == 401
    assert server.ask("POST", HOOK, sent, token=None, X_API_Key="wrong").status == 403


def test_the_same_key_is_the_same_answer(server: Served) -> None:
    bodies = [{"content": f"Delivery {number} has arrived."} for number in range(2)]
    first = server.ask("POST", HOOK, bodies[0], Idempotency_Key="k1")
    with ThreadPoolExecutor() as several:
        again = [
            *several.map(
                lambda _: server.ask("POST", HOOK, bodies[0], Idempotency_Key="k1"), range(4)
            )
        ]
    assert {answer.body for answer in again} == {first.body} and {
        answer.status for answer in again
    } == {202}
    refused = server.ask("POST", HOOK, bodies[1], Idempotency_Key="k1")
    assert refused.status == 422 and refused.problem["code"] == "conflict"
    other = server.ask(
        "POST", HOOK, bodies[1], token=server.new_token("other", "--write"), Idempotency_Key="k1"
    )
    assert other.status == 202 and other.data["id"] != first.data["id"]
    failed = [
        server.ask("POST", HOOK, document, Idempotency_Key="k2").status
        for document in ({"content": ""}, bodies[1])
    ]
    assert failed == [422, 202]


def test_tools_are_called_without_mcp(server: Served) -> None:
    tools = server.ask("GET", "/mcp/tools").data["tools"]
    assert [row["name"] for row in tools][:2] == [
        "add_memory",
        "search_memory",
    ] and "inputSchema" in tools[0]
    arguments = {"content": "I collect stamps", "user_id": "sam"}
    called = server.ask(
        "POST", "/mcp/tools/call", {"name": "add_memory", "arguments": arguments}
    ).data
    assert called["content"][0]["text"].startswith("Memory added successfully.")
    assert called["structuredContent"]["events"][0]["memory"] == "I collect stamps"
    assert found_memories(server, "what do I collect", "sam") == ["I collect stamps"]


def test_who_may_only_read_writes_nothing(server: Served) -> None:
    reader = server.new_token("reader")
    writes = [
        ("POST", f"{API}/memory", {"content": "x", "user_id": "a"}),
        ("POST", HOOK, {"content": "x"}),
    ]
    writes += [
        ("PUT", f"{API}/kb/document", {"file_path": "a.md", "content": "x"}),
        ("DELETE", f"{API}/memory/x", {}),
    ]
    writes += [
        (
            "POST",
            "/mcp/tools/call",
            {"name": "add_memory", "arguments": {"content": "x", "user_id": "a"}},
        )
    ]
    for method, path, body in writes:
        assert server.ask(method, path, body, token=reader).status == 403, path
    assert found_memories(server, "x", "a", reader) == []


NOTICE = "x-simplemem-notice"


def test_an_answer_of_a_fixed_shape_says_in_its_head_what_a_change_replaced(server: Served) -> None:
    ident = add(server, "I keep bees", "wim")
    changed = server.ask(
        "PUT", f"{API}/memory/{ident}", {"content": "I keep goats", "user_id": "wim"}
    )
    assert changed.data == {"status": "memory updated"}
    assert (
        "replaced a text" in changed.headers[NOTICE]
        and "simplemem undo v" in changed.headers[NOTICE]
    )

    document = {"file_path": "goats.md", "content": "# Goats\n"}
    assert NOTICE not in server.ask("PUT", f"{API}/kb/document", document).headers
    again = server.ask("PUT", f"{API}/kb/document", document | {"content": "# Sheep\n"})
    assert again.status == 202 and "replaced a text" in again.data["notice"]


def test_an_answer_of_a_fixed_shape_says_in_its_head_that_notes_are_not_indexed_yet(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    base = tmp_path / "vault" / "kb"
    base.mkdir(parents=True)
    (base / "lamp.md").write_text("The lantern hangs in the hall.\n")
    away = {"SIMPLEMEM_EMBED_PROVIDER": "ollama", "SIMPLEMEM_EMBED_URL": "http://127.0.0.1:9"}
    served = serve("--profile", "remembrances", "--knowledge-base", str(base), env=away)
    found = served.ask("POST", f"{API}/kb/query", {"query": "lantern"})
    assert found.data["results"] and "not yet by meaning" in found.headers[NOTICE]
    called = served.ask(
        "POST",
        "/mcp/tools/call",
        {"name": "query_knowledge_base", "arguments": {"query": "lantern"}},
    )
    assert any("not yet by meaning" in part["text"] for part in called.data["content"])
