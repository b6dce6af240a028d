"""The OpenAPI document of the API: made of the tools whose routes they are, so that neither can say what the other does
not. `python -m simplemem.network.openapi` prints it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from simplemem import __version__
from simplemem.faces import remembrances
from simplemem.faces.core import TOOLS
from simplemem.faces.face import Tool

_PROBLEM: Final = {
    "type": "object",
    "required": ["title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, in a sentence"},
        "code": {"type": "string", "description": "A contract with programs: invalid, not_found, conflict, ..."},
        "hint": {"type": "string", "description": "The way out"},
    },
}
_CODES: Final = (400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 421, 422, 429, 431, 503)
_OBJECT: Final = {"type": "object"}
_CONTRACTS: Final[Mapping[str, tuple[str, str, str]]] = {
    # path and method -> the tool whose arguments it takes, the code of an answer, what it is for
    "/memory post": ("add_memory", "202", "Remember what a user told"),
    "/memory/search post": ("search_memory", "200", "Search the memories of a user"),
    "/memory/{id} put": ("update_memory", "200", "Change a memory"),
    "/memory/{id} delete": ("delete_memory", "204", "Delete a memory"),
    "/kb/query post": ("query_knowledge_base", "200", "Ask the knowledge base"),
    "/kb/document put": ("update_knowledge_base", "202", "Write into the knowledge base"),
}
_OTHERS: Final[Mapping[str, tuple[str, str]]] = {
    "/tags get": ("Every tag, with how many notes have it", "application/json"),
    "/stats get": ("Numbers of the vault", "application/json"),
    "/tools get": ("The tools of the vault's face", "application/json"),
    "/changes get": (
        "Word of each change, as server-sent events; Last-Event-ID asks for those since",
        "text/event-stream",
    ),
}


def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for tool in TOOLS:
        for said in tool.routes:
            method, _, path = said.partition(" ")
            code = "201" if tool.name == "create_memory" else "200"
            paths.setdefault(path, {})[method.lower()] = _operation(tool, tool.title, path, method.lower(), code)
    used = {each.name: each for each in (*remembrances.TOOLS, *remembrances.KNOWLEDGE_BASE)}
    for place, (name, code, title) in _CONTRACTS.items():
        path, method = place.split()
        paths.setdefault(path, {})[method] = _operation(used[name], title, path, method, code)
    for place, (title, kind) in _OTHERS.items():
        path, method = place.split()
        answer = {"description": "It is so", "content": {kind: {"schema": _OBJECT if "json" in kind else {}}}}
        paths.setdefault(path, {})[method] = {"summary": title, "responses": {"200": answer} | _failures()}
    call = {"summary": "Call any tool of the vault's face", "parameters": [_in_path("tool")]}
    body = {"content": {"application/json": {"schema": _OBJECT}}}
    answer = {"description": "What the tool answers", "content": {"application/json": {"schema": _OBJECT}}}
    paths["/tools/{tool}"] = {"post": call | {"requestBody": body, "responses": {"200": answer} | _failures()}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "simplemem", "version": __version__, "license": {"name": "MIT", "identifier": "MIT"}},
        "servers": [{"url": "/api/v1"}],
        "security": [{"bearer": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(tool: Tool, title: str, path: str, method: str, code: str) -> dict[str, Any]:
    own = tool.input["properties"]
    needed = set(tool.input.get("required", ()))
    in_path = [each for each in ("name", "id") if f"{{{each}}}" in path]
    left = {
        key: each for key, each in own.items() if key not in (*in_path, *(("memory_id",) if "id" in in_path else ()))
    }
    parameters = [_in_path(each) for each in in_path]
    shown: dict[str, Any] = {"summary": title, "description": tool.description}
    if method in ("get", "delete"):
        rows = [{"name": key, "in": "query", "required": key in needed, "schema": each} for key, each in left.items()]
        parameters += [{**row, "required": False} if row["name"] == "user_id" else row for row in rows]
    else:
        optional = {"user_id"} if "id" in in_path else {"content"} if method == "patch" else set()
        schema = {"type": "object", "properties": left, "required": sorted((needed & set(left)) - optional)}
        kinds = {"application/json": {"schema": schema}}
        kinds |= (
            {"text/markdown": {"schema": {"type": "string"}}} if path == "/memories/{name}" and method == "put" else {}
        )
        shown["requestBody"] = {"required": True, "content": kinds}
    if "sha256" in (tool.output or {}).get("properties", {}) and in_path:
        parameters += [_header("If-None-Match")] if method in ("get", "put") else []
        parameters += [_header("If-Match")] if method in ("put", "patch", "delete") else []
    answer: dict[str, Any] = {"description": "Done"}
    if code != "204":
        answer["content"] = {
            "application/json": {"schema": tool.output if path.startswith("/m") and "ies" in path else _OBJECT}
        }
    if path == "/memories/{name}" and method == "get":
        answer["content"]["text/markdown"] = {"schema": {"type": "string"}}
    more = {"304": {"description": "It is as you know it"}} if path == "/memories/{name}" and method == "get" else {}
    codes = {code: answer, **({"200": answer} if code == "201" else {}), **more}
    return shown | {"parameters": parameters, "responses": codes | _failures()}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}


def _failures() -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {str(code): {"description": "It is not so", "content": problem} for code in _CODES}


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
