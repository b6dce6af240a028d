"""The OpenAPI document says what the server does, and the one that is checked in is that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from simplemem.tools.core import TOOLS
from simplemem.web.openapi import document
from simplemem.web.rest import routes
from tests.web.conftest import Served, running

ROOT = Path(__file__).parents[2]
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, own in document()["paths"].items()
    for method, operation in own.items()
}


def test_the_document_that_is_checked_in_is_current() -> None:
    """`python -m simplemem.web.openapi > docs/openapi.json` writes it again."""
    command = [sys.executable, "-m", "simplemem.web.openapi"]
    printed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert printed == (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8")


def test_it_has_all_routes_of_the_tools() -> None:
    routes = {address.replace(" ", " /api/v1", 1) for tool in TOOLS for address in tool.routes}
    assert routes <= OPERATIONS.keys() and all(tool.routes for tool in TOOLS)
    idents = [
        operation["operationId"] for operation in OPERATIONS.values() if "operationId" in operation
    ]
    assert len({*idents}) == len(idents) == len(OPERATIONS) - 1


def test_it_has_all_routes_of_the_rest_api() -> None:
    vault: Any = SimpleNamespace(prefix="", settings=SimpleNamespace(no_delete=False))
    registry: Any = SimpleNamespace()
    served = {
        f"{method} {route.path.replace('{name:path}', '{name}')}"
        for route in routes(registry, vault)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert len(served) > 20
    assert served - OPERATIONS.keys() == set()


@pytest.mark.parametrize("address", OPERATIONS)
def test_an_operation_is_whole(address: str) -> None:
    operation = OPERATIONS[address]
    parameters = operation.get("parameters", [])
    for parameter in parameters:
        jsonschema.Draft202012Validator.check_schema(
            parameter.get("schema") or parameter["content"]["application/json"]["schema"]
        )
    for kind in [*operation.get("requestBody", {}).get("content", {}).values()]:
        jsonschema.Draft202012Validator.check_schema(kind["schema"])
    assert {
        f"{{{parameter['name']}}}" for parameter in parameters if parameter["in"] == "path"
    } == {part for part in address.split("/") if part.startswith("{")}
    assert len({(parameter["in"], parameter["name"]) for parameter in parameters}) == len(
        parameters
    )
    for parameter in parameters:
        schema = parameter.get("schema") or parameter["content"]["application/json"]["schema"]
        assert parameter.get("description") or schema.get("description"), parameter["name"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for name, schema in body.get("schema", {}).get("properties", {}).items():
        assert schema["description"], name


def answers_as_said(address: str, status: int, body: Any) -> None:
    schema = OPERATIONS[address]["responses"][str(status)]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator(schema).validate(body)


def test_the_server_answers_as_it_says(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        _ask_everything(server)


def _ask_everything(server: Served) -> None:
    note, person = {"content": "Balloons fly over [[b]]."}, {"user_id": "alex"}
    added = server.api("POST", "/memory", {"content": "I live in Bergen", **person}).data["events"][
        0
    ]["id"]
    requests: list[tuple[str, str, Any]] = [
        ("PUT /api/v1/memories/{name}", "/memories/a", note),
        ("PUT /api/v1/memories/{name}", "/memories/a", note),
        ("POST /api/v1/memories", "/memories", {**note, "name": "b"}),
        ("GET /api/v1/memories/{name}", "/memories/a", None),
        ("PATCH /api/v1/memories/{name}", "/memories/a", {"append": "more"}),
        ("PATCH /api/v1/tags/{name}", "/tags/a", {"tags": {"todo": True}}),
        ("GET /api/v1/memories", "/memories", None),
        ("GET /api/v1/search", "/search?q=balloons&explain=true", None),
        ("POST /api/v1/search", "/search", {"query": "balloons"}),
        ("GET /api/v1/context", "/context?query=balloons", None),
        ("POST /api/v1/context", "/context", {"query": "balloons"}),
        ("GET /api/v1/backlinks/{name}", "/backlinks/b", None),
        ("POST /api/v1/move/{name}", "/move/b", {"new_name": "c"}),
        ("GET /api/v1/history", "/history?diff=true", None),
        ("GET /api/v1/history/{name}", "/history/c", None),
        ("POST /api/v1/undo", "/undo", {"name": "c"}),
        ("DELETE /api/v1/memories/{name}", "/memories/a", None),
        ("GET /api/v1/tags", "/tags", None),
        ("GET /api/v1/stats", "/stats", None),
        ("GET /api/v1/tools", "/tools", None),
        ("GET /api/v1/openapi.json", "/openapi.json", None),
        ("POST /api/v1/tools/{tool}", "/tools/list_memories", {}),
        ("POST /api/v1/memory", "/memory", {"content": "I like tea", **person}),
        ("POST /api/v1/memory/search", "/memory/search", {"query": "tea", **person}),
        ("PUT /api/v1/memory/{id}", f"/memory/{added}", {"content": "I live in Oslo"}),
    ]
    for address, path, body in requests:
        answer = server.api(address.split()[0], path, body)
        assert answer.status < 300, (address, answer.body)
        answers_as_said(address, answer.status, answer.data)
    for address, body in (
        ("POST /ingest/webhook", {"content": "x"}),
        ("POST /mcp/tools/call", {"name": "list_memories"}),
    ):
        answer = server.ask(*address.split(), body)  # type: ignore[arg-type]
        answers_as_said(address, answer.status, answer.data)
    assert server.api("GET", "/openapi.json").data == json.loads(
        (ROOT / "docs" / "openapi.json").read_text("utf-8")
    )
