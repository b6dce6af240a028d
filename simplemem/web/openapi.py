"""The OpenAPI document of the API: made of the tools whose routes they are, so that neither can say what the other does
not. `python -m simplemem.web.openapi` prints it."""

from __future__ import annotations

import json
import re
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from simplemem import __version__
from simplemem.profiles.profile import Profile
from simplemem.profiles.registry import DEFAULT_PROFILE, compatibility_routes, find_profile
from simplemem.profiles.route import CompatibilityRoute
from simplemem.tools.core import TOOLS
from simplemem.tools.schema import Schema
from simplemem.tools.tool import Tool
from simplemem.tools.writing import update_memory
from simplemem.web.rest import API, MARKDOWN

_JSON: Final = "application/json"
_TEXT: Final[Schema] = {"type": "string"}
_OBJECT: Final[Schema] = {"type": "object"}
_FAILURES: Final = {key: {"$ref": "#/components/responses/Problem"} for key in ("4XX", "503")}
_TOLD: Final = tomllib.loads(Path(__file__).with_name("openapi.toml").read_text(encoding="utf-8"))


def document(prefix: str = "", profile: Profile | None = None) -> dict[str, Any]:
    """Return the whole document, of the vault at this path that is served with this profile."""
    every = {}
    for tool, said in ((each, said) for each in TOOLS for said in each.routes):
        method, _, path = said.partition(" ")
        every[f"{method} {API}{path}"] = _of_tool(tool, method, path)
    for address, compatible in compatibility_routes(
        profile or find_profile(DEFAULT_PROFILE)
    ).items():
        every[address] = _of_route(compatible, address)
    for said, other in _TOLD["others"].items():
        is_feed = said.endswith("/changes")
        parts = (
            _body(other["body"])
            if "body" in other
            else {"parameters": [_header("Last-Event-ID")] * is_feed}
        )
        answer = (
            {"description": "Success", "content": {"text/event-stream": {"schema": {}}}}
            if is_feed
            else _answer(_OBJECT)
        )
        every[said] = {"summary": other["summary"], **parts, "responses": {"200": answer}}
    base = deepcopy(_TOLD["base"])
    paths = base["paths"]
    for said, operation in sorted(every.items(), key=lambda each: each[0].split()[::-1]):
        method, path = said.split()
        named = {"in": "path", "required": True, "schema": _TEXT | {"minLength": 1}}
        in_path = [{"name": each, **named} for each in re.findall(r"{(\w+)}", path)]
        operation["parameters"] = in_path + operation["parameters"]
        operation["responses"] |= _FAILURES
        _add_meanings(operation)
        ident = "_".join(re.findall(r"\w+", f"{method.lower()} {path.removeprefix(API)}"))
        paths.setdefault(path, {})[method.lower()] = {"operationId": ident, **operation}
    base["info"]["version"] = __version__
    return {"openapi": "", "info": {}, "servers": [{"url": prefix or "/"}], "security": [], **base}


def _add_meanings(operation: dict[str, Any]) -> None:
    """Describe the parameters and fields that their tool does not describe, as a model needs no words for them."""
    meanings = _TOLD["meanings"]
    for parameter in operation["parameters"]:
        schema = parameter.get("schema") or parameter["content"][_JSON]["schema"]
        if "description" not in parameter and "description" not in schema:
            parameter["description"] = meanings[parameter["name"]]
    schemas = operation.get("requestBody", {}).get("content", {})
    if fields := schemas.get(_JSON, {}).get("schema", {}).get("properties"):
        body = schemas[_JSON]["schema"]
        described = {
            key: {"description": meanings.get(key, ""), **each} for key, each in fields.items()
        }
        schemas[_JSON]["schema"] = body | {"properties": described}


def _of_tool(tool: Tool, method: str, path: str) -> dict[str, Any]:
    """A route of a default tool."""
    is_put, is_read = method == "PUT", method == "GET" and path == "/memories/{name}"
    unsaid = {"name"} & {*re.findall(r"\w+", path)} | ({"overwrite"} if is_put else set())
    parts = _taken(tool, method, unsaid, {"content"} if method == "PATCH" else set())
    if is_put:
        parts["requestBody"]["content"][MARKDOWN] = {"schema": _TEXT}
    parts["parameters"] += [_header("If-Match")] if "if_sha256" in tool.arguments or is_put else []
    parts["parameters"] += [_header("If-None-Match")] if is_read or is_put else []
    answer = _answer(
        {"anyOf": [tool.output, update_memory.output]} if is_put else tool.output or _OBJECT
    )
    answer["content"] |= {MARKDOWN: {"schema": _TEXT}} if is_read else {}
    codes = ("200", "201") if is_put else ("201",) if tool.creates else ("200",)
    answers = dict.fromkeys(codes, answer) | (
        {"304": {"description": "Not modified"}} if is_read else {}
    )
    return {"summary": tool.title, "description": tool.description, **parts, "responses": answers}


def _of_route(route: CompatibilityRoute, address: str) -> dict[str, Any]:
    """Describe a route of another server."""
    tool = route.tool
    has_id = "{id}" in address
    in_path = {"memory_id"} if has_id else set()
    optional = {"user_id"} if has_id else set()
    parts = _taken(tool, address.split()[0], in_path, optional)
    if has_id:
        parts["parameters"].append(_header("If-Match"))
    if route.is_idempotent:
        parts["parameters"].append(_header("Idempotency-Key"))

    answer = {"description": "Success"} if route.status == 204 else _answer(_schema_of_body(route))
    return {
        "summary": tool.title,
        "description": tool.description,
        **parts,
        "responses": {str(route.status): answer},
    }


def _schema_of_body(route: CompatibilityRoute) -> Schema:
    """Return the schema of the answer of a route of another server."""
    added: Schema = {}
    if route.status_text:
        added["status"] = {"const": route.status_text}
    if route.text_field:
        added[route.text_field] = _TEXT

    output = route.tool.output or {"properties": {}}
    own = {
        key: schema
        for key, schema in output["properties"].items()
        if route.fields is None or key in route.fields
    }
    required = [*added, *(key for key in output.get("required", ()) if key in own)]
    return {"type": "object", "properties": added | own, "required": required}


def _taken(tool: Tool, method: str, unsaid: set[str], optional: set[str]) -> dict[str, Any]:
    """What a tool takes, in the query or in the body."""
    own = {key: each for key, each in tool.input["properties"].items() if key not in unsaid}
    needed = [
        each for each in tool.input.get("required", ()) if each in own and each not in optional
    ]
    if method not in ("GET", "DELETE"):
        return _body(
            {"type": "object", "properties": own, "required": needed, "additionalProperties": False}
        )
    rows = []
    for key, schema in own.items():
        is_plain = schema.get("type") not in ("object", "array", None)
        form = {"schema": schema} if is_plain else {"content": {_JSON: {"schema": schema}}}
        rows.append({"name": key, "in": "query", "required": key in needed, **form})
    return {"parameters": rows}


def _body(schema: Schema) -> dict[str, Any]:
    return {
        "parameters": [],
        "requestBody": {"required": True, "content": {_JSON: {"schema": schema}}},
    }


def _answer(schema: Schema) -> dict[str, Any]:
    return {"description": "Success", "content": {_JSON: {"schema": schema}}}


def _header(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": _TOLD["headers"][name],
        "schema": _TEXT,
    }


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
