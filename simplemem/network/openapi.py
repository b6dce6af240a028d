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
from simplemem.network.contracts import CONTRACTS, Contract
from simplemem.network.rest import API, MARKDOWN

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
_FAILURES: Final = {
    "4XX": {"$ref": "#/components/responses/Problem"},
    "503": {"$ref": "#/components/responses/Problem"},
}
_CALL: Final[Schema] = {"type": "object", "properties": {"name": _TEXT, "arguments": _OBJECT}, "required": ["name"]}
_OTHERS: Final[Mapping[str, tuple[str, Schema | None, str]]] = {
    # method and path -> what it is for, the schema of its body, and the type of its answer
    f"GET {API}/tags": ("Every tag, with how many notes have it", None, "application/json"),
    f"GET {API}/stats": ("Numbers of the vault", None, "application/json"),
    f"GET {API}/changes": ("Word of each change, as server-sent events", None, "text/event-stream"),
    f"GET {API}/tools": ("The tools of the vault's face", None, "application/json"),
    f"POST {API}/tools/{{tool}}": ("Call a tool of the vault's face: its data", _OBJECT, "application/json"),
    "GET /mcp/tools": ("The tools of the vault's face", None, "application/json"),
    "POST /mcp/tools/call": ("Call a tool of the vault's face, answered as over MCP", _CALL, "application/json"),
    f"GET {API}/openapi.json": ("This document", None, "application/json"),
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
        parts = _body({"application/json": schema}) if schema else {"parameters": []}
        parts["parameters"] = [_header("Last-Event-ID")] if kind == "text/event-stream" else []
        every[said] = {
            "summary": summary,
            **parts,
            "responses": {"200": _answer({kind: _OBJECT if "j" in kind else {}})},
        }
    paths: dict[str, Any] = {
        "/health": {"get": {"summary": "Whether it runs", "security": [], "responses": {"200": _answer()}}}
    }
    for said, operation in sorted(every.items(), key=lambda each: each[0].split()[::-1]):
        method, path = said.split()
        own = [
            {"name": each, "in": "path", "required": True, "schema": _TEXT | {"minLength": 1}}
            for each in re.findall(r"{(\w+)}", path)
        ]
        operation |= {"parameters": own + operation["parameters"], "responses": operation["responses"] | _FAILURES}
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
    is_memory, is_put = path == "/memories/{name}", method == "PUT"
    unsaid = {"overwrite"} if is_put else set()
    if "{name}" in path:
        unsaid.add("name")
    parts = _taken(tool, method, unsaid, {"content"} if method == "PATCH" else set())
    if is_memory and is_put:
        parts["requestBody"]["content"][MARKDOWN] = {"schema": _TEXT}
    parts["parameters"] += [_header("If-Match")] if "if_sha256" in tool.arguments or is_put else []
    parts["parameters"] += [_header("If-None-Match")] if is_memory and method in ("GET", "PUT") else []
    output = {"anyOf": [tool.output, update_memory.output]} if is_put else tool.output
    kinds: dict[str, Any] = {"application/json": output}
    answer = _answer(kinds | ({MARKDOWN: _TEXT} if is_memory and method == "GET" else {}))
    codes = ("200", "201") if is_put else ("201",) if tool.name == "create_memory" else ("200",)
    unchanged = {"304": {"description": "It is as you know it"}} if is_memory and method == "GET" else {}
    return {
        "summary": tool.title,
        "description": tool.description,
        **parts,
        "responses": dict.fromkeys(codes, answer) | unchanged,
    }


def _of_contract(contract: Contract, said: str) -> dict[str, Any]:
    """An address of another server."""
    tool, has_id = contract.tool, "{id}" in said
    parts = _taken(tool, said.split()[0], {"memory_id"} if has_id else set(), {"user_id"} if has_id else set())
    parts["parameters"] += [_header("If-Match")] if has_id else []
    parts["parameters"] += [_header("Idempotency-Key")] if contract.status == 202 and contract.data else []
    output = tool.output or _OBJECT
    told = {"status": {"const": contract.words}} if contract.words else {}
    told |= {contract.text: _TEXT} if contract.text else {}
    own = {key: each for key, each in output["properties"].items() if contract.data is None or key in contract.data}
    schema = {"type": "object", "properties": told | own}
    schema["required"] = [*told, *(each for each in output.get("required", ()) if each in own)]
    answer = {"description": "Done"} if contract.status == 204 else _answer({"application/json": schema})
    return {
        "summary": tool.title,
        "description": tool.description,
        **parts,
        "responses": {str(contract.status): answer},
    }


def _taken(tool: Tool, method: str, unsaid: set[str], optional: set[str]) -> dict[str, Any]:
    """What a tool takes, in the query or in the body."""
    own = {key: each for key, each in tool.input["properties"].items() if key not in unsaid}
    needed = [each for each in tool.input.get("required", ()) if each in own and each not in optional]
    if method not in ("GET", "DELETE"):
        schema = {"type": "object", "properties": own, "required": needed, "additionalProperties": False}
        return _body({"application/json": schema})
    rows = []
    for key, schema in own.items():
        is_plain = schema.get("type") not in ("object", "array", None)
        form = {"schema": schema} if is_plain else {"content": {"application/json": {"schema": schema}}}
        rows.append({"name": key, "in": "query", "required": key in needed, **form})
    return {"parameters": rows}


def _body(kinds: Mapping[str, Schema]) -> dict[str, Any]:
    content = {kind: {"schema": schema} for kind, schema in kinds.items()}
    return {"parameters": [], "requestBody": {"required": True, "content": content}}


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": _HEADERS[name], "schema": _TEXT}


def _answer(kinds: Mapping[str, Schema] = {"application/json": _OBJECT}) -> dict[str, Any]:
    return {"description": "Done", "content": {kind: {"schema": schema} for kind, schema in kinds.items()}}


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
