"""Whoever speaks for one user, or sees one folder, never hears of anything else: by no tool of any face, no route, resource,
completion, link, count or error."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

from tests.web.conftest import OWNER, Served, Session

FACES = [
    "default",
    "simplemem",
    "server-memory",
    "memento",
    "self-improving",
    "hmlr",
    "remembrances",
    "supermemento",
    "anthropic-memory",
    "chatgpt",
    "basic-memory",
]
_ALWAYS = {"default", "remembrances"}
of_each_face = pytest.mark.parametrize(
    "face",
    [pytest.param(face, marks=[] if face in _ALWAYS else pytest.mark.slow) for face in FACES],
)
MARK = "quetzal"  # stands in all that is Ben's, and in nothing that is asked
NAMES = [
    "ben/plan 1",
    "plan 2",
    "ben",
    "The plan 1 of ben",
    "topics",
    "graph",
    "ada/plan 0",
    "v000001",
    "the plan",
    "1",
]
PASTS = ["ada/left", "ada/came", "ben/came", "left", *(f"v{number:06}" for number in range(2, 30))]
READS = [
    "/memories",
    "/history",
    "/tags",
    "/stats",
    "/search?query=the+plan",
    "/context?query=the+plan",
    "/tools",
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server as `_serve_house` starts it. Tests write to its vaults."""
    yield from _serve_house(tmp_path_factory.mktemp("scopes"))


@pytest.fixture(scope="module")
def compared_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of the same kind, for tests that write only the same to both of its vaults.

    Workers run the tests of a module in any order, so these tests cannot rely on being first.
    """
    yield from _serve_house(tmp_path_factory.mktemp("compared scopes"))


def _serve_house(root: Path) -> Iterator[Served]:
    """Serve one vault behind every face: what is Ada's, Ben's, and everybody's. And one with Ada's alone."""
    arguments = list[str]()
    for vault, people in (("vault", ("ada", "ben")), ("alone/vault", ("ada",))):
        for who in people:
            (root / vault / who).mkdir(parents=True)
            mark = MARK if who == "ben" else "heron"
            for number in ("0", "1", "2", *(["z"] if who == "ben" else [])):
                text = f"---\ntags: [{mark}, plan]\n---\n# The plan {number} of {who}\n\nThe {mark} plan. [[ada/plan 0]]\n"
                (root / vault / who / f"plan {number}.md").write_text(text, encoding="utf-8")
        linking = "# Open\n\nSee [[plan 1]], [[ben/plan 2]].\n"
        (root / vault / "ada" / "open.md").write_text(linking, encoding="utf-8")
        for path in (root / vault).rglob("*.md"):
            os.utime(path, (1_750_000_000, 1_750_000_000))
        for face in FACES:
            name = face if vault == "vault" else f"{face}-alone"
            arguments += ["--vault", f"{name}={root / vault}", "--profile", f"{name}={face}"]
    server = Served(
        arguments, root / "config", {"SIMPLEMEM_INDEX_WATCH": "off"}
    )  # else a watcher for each of 32 stores
    for user, mark in (("ada", "heron"), ("ben", MARK)):
        texts = [f"I live in {mark.title()} Street.", f"My deadline is 3 May, for the {mark} plan."]
        for text in (*texts, f"{mark} " + f"The plan of the {mark} is long. " * 30):
            for vault in ("remembrances", *(["remembrances-alone"] if user == "ada" else [])):
                added = server.ask(
                    "POST", f"/{vault}/api/v1/memory", {"content": text, "user_id": user}
                )
                assert added.status == 202, added
    entities = [
        {"name": f"{MARK} plan", "entityType": "plan", "observations": [f"{MARK} observed"]}
    ]
    assert (
        server.ask("POST", "/memento/api/v1/tools/create_entities", {"entities": entities}).status
        == 200
    )
    turn = {"message": f"My favourite bird is the {MARK}."}
    assert server.ask("POST", "/hmlr/api/v1/tools/store_conversation", turn).status == 200
    for name, content in (("ada/left", "The plan that left."), ("ben/came", f"The {MARK} came.")):
        assert (
            server.ask(
                "POST", "/default/api/v1/memories", {"name": name, "content": content}
            ).status
            == 201
        )
    moves = [
        ("move_memory", {"name": "ada/left", "new_name": "ben/left"}),
        ("update_memory", {"name": "ben/left", "content": f"The {MARK} left."}),
        ("update_memory", {"name": "ben/came", "content": "The plan that came."}),
        ("move_memory", {"name": "ben/came", "new_name": "ada/came"}),
    ]
    for tool, sent in moves:
        assert server.ask("POST", f"/default/api/v1/tools/{tool}", sent).status == 200, (tool, sent)
    alone = root / "alone" / "vault"
    shutil.copy2(root / "vault" / "ada" / "came.md", alone / "ada")
    for note in alone.glob("*/ada/*.md"):  # made a moment later, perhaps in the next second
        shutil.copy2(root / "vault" / note.relative_to(alone), note)
    yield server
    server.process.kill()
    server.process.wait()
    server.log_reader.join(5)
    assert server.process.stderr is not None
    server.process.stderr.close()


@pytest.fixture(scope="module")
def ada(house: Served) -> str:
    """A token for Ada on `house`, whose vaults are ready."""
    return _token_for_ada(house)


@pytest.fixture(scope="module")
def compared_ada(compared_house: Served) -> str:
    """A token for Ada on `compared_house`, whose vaults are ready."""
    return _token_for_ada(compared_house)


def _token_for_ada(house: Served) -> str:
    token = house.new_token("ada", "--write", "--user", "ada", "--folder", "ada")

    def is_ready(vault: str) -> bool:
        return bool(
            house.ask("GET", f"/{vault}/api/v1/stats", token=token).data["state"]["state"]
            == "ready"
        )

    assert all(
        eventually(partial(is_ready, name)) for face in FACES for name in (face, f"{face}-alone")
    )
    return token


# --- all is as if the others were not there


@of_each_face
def test_all_answers_are_those_of_a_vault_without_the_others(
    compared_house: Served, compared_ada: str, face: str
) -> None:
    house = compared_house
    ada = compared_ada
    chance = random.Random(face)
    for path in [
        *READS,
        "/memories?limit=1",
        "/memories/ada/open",
        "/backlinks/ada/plan%201",  # which no call of the other faces can delete
    ]:
        both, alone = (
            house.ask("GET", f"/{vault_name}/api/v1{path}", token=ada)
            for vault_name in (face, f"{face}-alone")
        )
        assert (both.status, alone.status) == (200, 200), path
        assert _plain(both.body) == _plain(alone.body), path
    tools = house.ask("GET", f"/{face}/api/v1/tools", token=ada).data["tools"]
    for tool in tools * 8:
        arguments = _arguments(tool["inputSchema"], chance, NAMES)
        address = "api/v1/tools/" + tool["name"]
        both, alone = (
            house.ask("POST", f"/{vault_name}/{address}", arguments, token=ada)
            for vault_name in (face, f"{face}-alone")
        )
        assert (both.status, _plain(both.body)) == (alone.status, _plain(alone.body)), (
            tool["name"],
            arguments,
        )


def _plain(body: bytes) -> str:
    """An answer without what differs by chance: moments, ids, hashes, numbers of versions, and the vault's own routes."""
    by_chance = r"[0-9a-f]{6,64}|v\d+|\d+(\.\d+)? ?ms|(_ms|timeTaken\\?)\W+[\d.]+|\d{4}-\d\d-\d\d|\d\d:[\d:.]+Z?"
    text = body.decode().replace("/alone/", "/").replace("-alone/api/", "/api/")
    return re.sub(by_chance, "*", text)


def test_mcp_tells_of_nothing_else_either(compared_house: Served, compared_ada: str) -> None:
    house = compared_house
    ada = compared_ada
    asks: list[tuple[str, dict[str, Any]]] = [
        ("resources/list", {}),
        ("resources/read", {"uri": "memory://ben/plan%201"}),
        ("resources/read", {"uri": "memory://changes"}),
        ("resources/subscribe", {"uri": "memory://ben/plan%201"}),
        ("prompts/get", {"name": "recall", "arguments": {"topic": "the plan"}}),
        ("prompts/get", {"name": "review", "arguments": {}}),
    ]
    template = {"type": "ref/resource", "uri": "memory://{+name}"}
    for start in ("", "b", "ben/", "q", "pl"):
        asks += [
            ("completion/complete", {"ref": template, "argument": {"name": each, "value": start}})
            for each in ("name", "tag")
        ]
    session, alone = (
        Session(house, f"/{vault_name}/mcp", ada) for vault_name in ("default", "default-alone")
    )
    for method, params in asks:
        answer = session.ask(method, params)
        assert MARK not in answer.lower(), (method, params, answer)
        assert _plain(answer.encode()) == _plain(alone.ask(method, params).encode()), (
            method,
            params,
        )


@of_each_face
def test_no_route_tells_of_another(house: Served, ada: str, face: str) -> None:
    for path in READS:
        answer = house.ask("GET", f"/{face}/api/v1{path}", token=ada)
        assert answer.status == 200, (path, answer)
        assert MARK not in answer.body.decode().lower(), path
    listed = house.ask("GET", f"/{face}/api/v1/memories?limit=200", token=ada).data
    all_notes = house.ask("GET", f"/{face}/api/v1/memories?limit=200").data
    assert listed["total"] == len(listed["items"]) < all_notes["total"]
    assert {item["name"].split("/")[0] for item in listed["items"]} <= {
        "ada",
        "atoms",
        "documents",
        "profiles",
    }


@of_each_face
def test_no_tool_tells_of_another_whatever_it_is_asked(house: Served, ada: str, face: str) -> None:
    chance = random.Random(face)
    tools = house.ask("GET", f"/{face}/api/v1/tools", token=ada).data["tools"]
    texts_before = _texts(house)
    for tool in tools:
        for _ in range(12):
            arguments = _arguments(tool["inputSchema"], chance, [*NAMES, *PASTS])
            answer = house.ask("POST", f"/{face}/api/v1/tools/{tool['name']}", arguments, token=ada)
            assert answer.status < 500 or answer.status == 503, (tool["name"], arguments, answer)
            assert MARK not in answer.body.decode().lower(), (tool["name"], arguments, answer)
    assert _texts(house) == texts_before


@of_each_face
def test_what_is_another_s_is_as_what_is_not_there(house: Served, ada: str, face: str) -> None:
    for tool in house.ask("GET", f"/{face}/api/v1/tools", token=ada).data["tools"]:
        for key in tool["inputSchema"]["properties"].keys() - {
            "query",
            "content",
            "text",
            "message",
            "context",
        }:
            asked = [
                {**_needed(tool["inputSchema"]), key: each} for each in ("ben/plan z", "ben/plan y")
            ]
            found = [
                house.ask("POST", f"/{face}/api/v1/tools/{tool['name']}", each, token=ada)
                for each in asked
            ]
            existing, nowhere = (re.sub(r"\by\b", "z", _plain(answer.body)) for answer in found)
            assert (found[0].status, existing) == (found[1].status, nowhere), (tool["name"], key)


def test_a_session_cannot_be_taken_by_another_token(house: Served, ada: str) -> None:
    session = Session(house, "/default/mcp", OWNER)
    session.token = ada
    assert session.post({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}).status == 404


def test_a_token_for_one_vault_finds_no_other(house: Served) -> None:
    token = house.new_token("one vault", "--vault", "default")
    assert house.ask("GET", "/default/api/v1/tags", token=token).status == 200
    existing = house.ask("GET", "/memento/api/v1/tags", token=token)
    nowhere = house.ask("GET", "/nothing/api/v1/tags", token=token)
    assert (existing.status, nowhere.status) == (404, 404)


def test_the_user_of_a_token_is_always_who_it_speaks_for(house: Served, ada: str) -> None:
    def ask(method: str, path: str, body: Any = None) -> Any:
        return house.ask(method, f"/remembrances/api/v1{path}", body, token=ada)

    assert ask("POST", "/memory", {"content": "I own a bike.", "user_id": "ben"}).status == 400
    assert ask("POST", "/memory", {"content": "I own a bike."}).status == 202
    assert "bike" in ask("POST", "/memory/search", {"query": "bike"}).data["results"]
    facts_of_ben = house.ask(
        "POST", "/remembrances/api/v1/memory/search", {"query": "live", "user_id": "ben"}
    ).data
    ident = facts_of_ben["facts"][0]["id"]
    assert ask("PUT", f"/memory/{ident}", {"content": "mine"}).status == 404
    assert ask("DELETE", f"/memory/{ident}").status == 404
    assert ask("DELETE", f"/memory/{ident}?user_id=ben").status in (400, 404)
    changed = house.ask(
        "PUT", f"/remembrances/api/v1/memory/{ident}", {"content": f"I live in {MARK} Road."}
    )
    assert changed.status == 200


def _arguments(schema: dict[str, Any], chance: random.Random, names: list[str]) -> dict[str, Any]:
    """Arguments that reach for what is another's."""
    needed = schema.get("required", [])
    chosen = [key for key in schema["properties"] if key in needed or chance.random() < 0.4]
    return {key: _value(schema["properties"][key], chance, names) for key in chosen}


def _value(schema: dict[str, Any], chance: random.Random, names: list[str]) -> Any:
    other_types = [variant["type"] for variant in schema.get("anyOf", []) if variant.get("type")]
    kinds = schema.get("type") or next(iter(other_types), "string")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "array":
        return [_value(schema.get("items") or {"type": "string"}, chance, names)]
    if kind == "object":
        return {
            key: _value(field_schema, chance, names)
            for key, field_schema in schema.get("properties", {}).items()
        }
    if kind in ("integer", "number"):
        return chance.choice([1, 5, 50])
    if kind == "boolean":
        return chance.random() < 0.5
    if "enum" in schema:
        return chance.choice(schema["enum"])
    return chance.choice(names)


def _needed(schema: dict[str, Any]) -> dict[str, Any]:
    chance = random.Random(1)
    return {
        key: _value(schema["properties"][key], chance, NAMES) for key in schema.get("required", [])
    }


def _texts(house: Served) -> dict[str, str]:
    """What is Ben's on disk."""
    vault = house.config.parent / "vault"
    hidden_folders = {"ben", "graph", "topics"}
    files = [file for file in vault.rglob("*.md") if hidden_folders & {*file.parts}]
    return {str(file): file.read_text(encoding="utf-8") for file in files}
