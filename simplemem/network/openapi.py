"""The OpenAPI document of the API: made of the tools whose routes they are, so that neither can say what the other does
not. `python -m simplemem.network.openapi` prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from simplemem import __version__
from simplemem.faces.arguments import Schema
from simplemem.faces.core import TOOLS, update_memory
from simplemem.faces.face import Tool
from simplemem.network.contracts import CONTRACTS, Contract, take_document
from simplemem.network.rest import API, MARKDOWN

_JSON: Final = "application/json"
_TEXT: Final[Schema] = {"type": "string"}
_OBJECT: Final[Schema] = {"type": "object"}
_PROBLEM: Final[Schema] = {
    "type": "object",
    "required": ["title", "status", "detail", "code"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT | {"description": "What happened, in a sentence"},
        "code": _TEXT | {"description": "A contract with programs: invalid, not_found, conflict, ..."},
        "hint": _TEXT | {"description": "The way out"},
    },
}
_FAILURES: Final = {key: {"$ref": "#/components/responses/Problem"} for key in ("4XX", "503")}
_CALL: Final[Schema] = {"type": "object", "properties": {"name": _TEXT, "arguments": _OBJECT}, "required": ["name"]}
_OTHERS: Final[Mapping[str, tuple[str, Schema | None, str]]] = {
    # method and path -> what it is for, the schema of its body, and the type of its answer
    f"GET {API}/tags": ("Every tag, with how many notes have it", None, _JSON),
    f"GET {API}/stats": ("Numbers of the vault", None, _JSON),
    f"GET {API}/changes": ("Word of each change, as server-sent events", None, "text/event-stream"),
    f"GET {API}/tools": ("The tools of the vault's face", None, _JSON),
    f"POST {API}/tools/{{tool}}": ("Call a tool of the vault's face: its data", _OBJECT, _JSON),
    "GET /mcp/tools": ("The tools of the vault's face", None, _JSON),
    "POST /mcp/tools/call": ("Call a tool of the vault's face, answered as over MCP", _CALL, _JSON),
    f"GET {API}/openapi.json": ("This document", None, _JSON),
}
_HEADERS: Final = {
    "If-Match": "the ETag that was read: 412 if it has changed since; a PUT is an update then, and properties stay",
    "If-None-Match": "`*` on a PUT: only if there is none, else 412; on a GET the ETag that is known: 304 if it is so",
    "Idempotency-Key": "the same again within a day is the same answer",
    "Last-Event-ID": "those since this event",
}


def document(prefix: str = "") -> dict[str, Any]:
    """The whole document, of the vault at this path."""
    every = {}
    for tool, said in ((each, said) for each in TOOLS for said in each.routes):
        method, _, path = said.partition(" ")
        every[f"{method} {API}{path}"] = _of_tool(tool, method, path)
    every |= {said: _of_contract(each, said) for said, each in CONTRACTS.items()}
    for said, (summary, schema, kind) in _OTHERS.items():
        is_json = kind == _JSON
        parts = _body(schema) if schema else {"parameters": [] if is_json else [_header("Last-Event-ID")]}
        answer = {"description": "Done", "content": {kind: {"schema": _OBJECT if is_json else {}}}}
        every[said] = {"summary": summary, **parts, "responses": {"200": answer}}
    health = {
        "summary": "Whether it runs",
        "security": [],
        "servers": [{"url": "/"}],
        "responses": {"200": _answer(_OBJECT)},
    }
    paths: dict[str, Any] = {"/health": {"get": health}}
    for said, operation in sorted(every.items(), key=lambda each: each[0].split()[::-1]):
        method, path = said.split()
        named = {"in": "path", "required": True, "schema": _TEXT | {"minLength": 1}}
        operation["parameters"] = [{"name": each, **named} for each in re.findall(r"{(\w+)}", path)] + operation[
            "parameters"
        ]
        operation["responses"] |= _FAILURES
        ident = "_".join(re.findall(r"\w+", f"{method.lower()} {path.removeprefix(API)}"))
        paths.setdefault(path, {})[method.lower()] = {"operationId": ident, **operation}
    problem = {"description": "It is not so", "content": {"application/problem+json": {"schema": _PROBLEM}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "simplemem", "version": __version__, "license": {"name": "MIT", "identifier": "MIT"}},
        "servers": [{"url": prefix or "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "responses": {"Problem": problem},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _of_tool(tool: Tool, method: str, path: str) -> dict[str, Any]:
    """A route of a default tool."""
    is_put, is_read = method == "PUT", method == "GET" and path == "/memories/{name}"
    unsaid = {"name"} & {*re.findall(r"\w+", path)} | ({"overwrite"} if is_put else set())
    parts = _taken(tool, method, unsaid, {"content"} if method == "PATCH" else set())
    if is_put:
        parts["requestBody"]["content"][MARKDOWN] = {"schema": _TEXT}
    parts["parameters"] += [_header("If-Match")] if "if_sha256" in tool.arguments or is_put else []
    parts["parameters"] += [_header("If-None-Match")] if is_read or is_put else []
    answer = _answer({"anyOf": [tool.output, update_memory.output]} if is_put else tool.output or _OBJECT)
    answer["content"] |= {MARKDOWN: {"schema": _TEXT}} if is_read else {}
    codes = ("200", "201") if is_put else ("201",) if tool.name == "create_memory" else ("200",)
    answers = dict.fromkeys(codes, answer) | ({"304": {"description": "It is as you know it"}} if is_read else {})
    return {"summary": tool.title, "description": tool.description, **parts, "responses": answers}


def _of_contract(contract: Contract, said: str) -> dict[str, Any]:
    """An address of another server."""
    tool, has_id = contract.tool, "{id}" in said
    parts = _taken(tool, said.split()[0], {"memory_id"} if has_id else set(), {"user_id"} if has_id else set())
    parts["parameters"] += [_header("If-Match")] if has_id else []
    parts["parameters"] += [_header("Idempotency-Key")] if contract.tool is take_document else []
    output = tool.output or _OBJECT
    told: Schema = {"status": {"const": contract.words}} if contract.words else {}
    told |= {contract.text: _TEXT} if contract.text else {}
    own = {key: each for key, each in output["properties"].items() if contract.data is None or key in contract.data}
    needed = [*told, *(each for each in output.get("required", ()) if each in own)]
    answer = _answer({"type": "object", "properties": told | own, "required": needed})
    answer = {"description": "Done"} if contract.status == 204 else answer
    responses = {str(contract.status): answer}
    return {"summary": tool.title, "description": tool.description, **parts, "responses": responses}


def _taken(tool: Tool, method: str, unsaid: set[str], optional: set[str]) -> dict[str, Any]:
    """What a tool takes, in the query or in the body."""
    own = {key: each for key, each in tool.input["properties"].items() if key not in unsaid}
    needed = [each for each in tool.input.get("required", ()) if each in own and each not in optional]
    if method not in ("GET", "DELETE"):
        return _body({"type": "object", "properties": own, "required": needed, "additionalProperties": False})
    rows = []
    for key, schema in own.items():
        is_plain = schema.get("type") not in ("object", "array", None)
        form = {"schema": schema} if is_plain else {"content": {_JSON: {"schema": schema}}}
        rows.append({"name": key, "in": "query", "required": key in needed, **form})
    return {"parameters": rows}


def _body(schema: Schema) -> dict[str, Any]:
    return {"parameters": [], "requestBody": {"required": True, "content": {_JSON: {"schema": schema}}}}


def _answer(schema: Schema) -> dict[str, Any]:
    return {"description": "Done", "content": {_JSON: {"schema": schema}}}


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": _HEADERS[name], "schema": _TEXT}


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
