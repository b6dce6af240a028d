"""The OpenAPI document of the HTTP API.

It is made from the tools that the routes call, so the two cannot differ. `openapi.toml` has what no
tool says. `python -m simplemem.web.openapi` prints the document.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, TypeAlias

from simplemem import __version__
from simplemem.profiles.profile import Profile
from simplemem.profiles.registry import DEFAULT_PROFILE, compatibility_routes, find_profile
from simplemem.profiles.route import CompatibilityRoute
from simplemem.tools.core import TOOLS
from simplemem.tools.schema import Schema
from simplemem.tools.tool import Tool
from simplemem.tools.writing import update_memory
from simplemem.web.routing import API, MARKDOWN

Operation: TypeAlias = dict[str, Any]
"""An operation object of OpenAPI: what one method does at one path."""

_JSON: Final = "application/json"
_TEXT: Final[Schema] = {"type": "string"}
_OBJECT: Final[Schema] = {"type": "object"}
_PROBLEM: Final = {"$ref": "#/components/responses/Problem"}
_NOTE: Final = "/memories/{name}"
_TEMPLATES: Final = tomllib.loads(
    Path(__file__).with_name("openapi.toml").read_text(encoding="utf-8")
)


def document(prefix: str = "", profile: Profile | None = None) -> dict[str, Any]:
    """Return the OpenAPI document of a vault.

    `prefix` is the path of the vault, and `profile` the one that it is served with; the default
    profile if None.
    """
    if profile is None:
        profile = find_profile(DEFAULT_PROFILE)
    base: dict[str, Any] = deepcopy(_TEMPLATES["base"])
    base["info"]["version"] = __version__

    paths = base["paths"]
    operations = _operations(profile)
    for address in sorted(operations, key=_path_and_method):
        method, _, path = address.partition(" ")
        operation = operations[address]
        operation["parameters"] = _path_parameters(path) + operation["parameters"]
        operation["responses"] |= {"4XX": _PROBLEM, "503": _PROBLEM}
        _add_descriptions(operation)
        identified = {"operationId": _operation_id(method, path), **operation}
        paths.setdefault(path, {})[method.lower()] = identified

    server = {"url": prefix or "/"}
    # These keys come first, for people who read the document. `base` has most of them, too.
    return {
        "openapi": base["openapi"],
        "info": base["info"],
        "servers": [server],
        "security": base["security"],
        **base,
    }


def _operations(profile: Profile) -> dict[str, Operation]:
    """Return the operations by "METHOD /path".

    They lack their path parameters, the responses to failures, and descriptions that no tool has;
    `document` adds these.
    """
    operations = {}
    for tool in TOOLS:
        for address in tool.routes:
            method, _, path = address.partition(" ")
            operations[f"{method} {API}{path}"] = _describe_tool(tool, method, path)

    for address, route in compatibility_routes(profile).items():
        operations[address] = _describe_route(route, address)

    for address, template in _TEMPLATES["others"].items():
        operations[address] = _describe_other(address, template)
    return operations


def _path_and_method(address: str) -> tuple[str, str]:
    """Return the path and the method of "METHOD /path". Operations are sorted by them."""
    method, _, path = address.partition(" ")
    return path, method


def _operation_id(method: str, path: str) -> str:
    """Return the id of an operation: `get_memories_name` for `GET /api/v1/memories/{name}`."""
    words = re.findall(r"\w+", path.removeprefix(API))
    return "_".join([method.lower(), *words])


# --- operations


def _describe_tool(tool: Tool, method: str, path: str) -> Operation:
    """Return the operation of a route that calls a default tool: `method` at `path`."""
    is_put = method == "PUT"
    is_note_read = method == "GET" and path == _NOTE

    omitted = set()
    optional = set()
    if "{name}" in path:
        omitted.add("name")
    if is_put:
        omitted.add("overwrite")
    if method == "PATCH":
        optional.add("content")
    parts = _describe_input(tool, method, omitted, optional)
    if is_put:
        parts["requestBody"]["content"][MARKDOWN] = {"schema": _TEXT}
    if is_put or "if_sha256" in tool.arguments:
        parts["parameters"].append(_header_parameter("If-Match"))
    if is_put or is_note_read:
        parts["parameters"].append(_header_parameter("If-None-Match"))

    responses = _describe_responses(tool, is_put=is_put, is_note_read=is_note_read)
    return {
        "summary": tool.title,
        "description": tool.description,
        **parts,
        "responses": responses,
    }


def _describe_responses(tool: Tool, *, is_put: bool, is_note_read: bool) -> dict[str, Any]:
    """Return the responses of success of a default tool, by status.

    A PUT creates a note (201) or replaces or updates it (200). `is_note_read` is set for the route
    that reads a note, which can also answer 304 and with Markdown.
    """
    schema = tool.output or _OBJECT
    statuses = ["200"]
    if is_put:
        schema = {"anyOf": [tool.output, update_memory.output]}
        statuses = ["200", "201"]
    elif tool.creates:
        statuses = ["201"]

    response = _json_response(schema)
    if is_note_read:
        response["content"][MARKDOWN] = {"schema": _TEXT}
    responses: dict[str, Any] = dict.fromkeys(statuses, response)
    if is_note_read:
        responses["304"] = {"description": "Not modified"}
    return responses


def _describe_route(route: CompatibilityRoute, address: str) -> Operation:
    """Return the operation of a route of a server that a profile replaces.

    `address` is "METHOD /path".
    """
    tool = route.tool
    omitted = set()
    optional = set()
    if route.find_note is not None:
        omitted.add(route.id_argument)
        optional.add(route.user_argument)

    method, _, _ = address.partition(" ")
    parts = _describe_input(tool, method, omitted, optional)
    if route.find_note is not None:
        parts["parameters"].append(_header_parameter("If-Match"))
    if route.is_idempotent:
        parts["parameters"].append(_header_parameter("Idempotency-Key"))

    response = {"description": "Success"}
    if route.status != 204:
        response = _json_response(_body_schema(route))
    return {
        "summary": tool.title,
        "description": tool.description,
        **parts,
        "responses": {str(route.status): response},
    }


def _body_schema(route: CompatibilityRoute) -> Schema:
    """Return the schema of the body that a route of a replaced server answers with.

    The body has the route's status text and the text of the tool, if the route sends them, and
    fields of the tool's data: `route.fields`, or all of them if that is None.
    """
    properties: Schema = {}
    if route.status_text:
        properties["status"] = {"const": route.status_text}
    if route.text_field:
        properties[route.text_field] = _TEXT
    required = list(properties)

    output = route.tool.output or {"properties": {}}
    fields = route.fields
    if fields is None:
        fields = tuple(output["properties"])
    for name, schema in output["properties"].items():
        if name in fields:
            properties[name] = schema
    required += [name for name in output.get("required", ()) if name in fields]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
    }


def _describe_other(address: str, template: dict[str, Any]) -> Operation:
    """Return the operation of a route that calls no default tool.

    `address` is "METHOD /path", and `template` its entry in `openapi.toml`: a `summary`, and the
    schema of its `body` if it has one.
    """
    parts: dict[str, Any] = {"parameters": []}
    response = _json_response(_OBJECT)
    if address.endswith("/changes"):
        parts["parameters"].append(_header_parameter("Last-Event-ID"))
        response = _response("text/event-stream", {})
    if "body" in template:
        parts = _json_body(template["body"])
    return {
        "summary": template["summary"],
        **parts,
        "responses": {"200": response},
    }


# --- parts of operations


def _describe_input(
    tool: Tool, method: str, omitted: Collection[str], optional: Collection[str]
) -> dict[str, Any]:
    """Return the parts `parameters` and `requestBody` that pass the arguments of a tool.

    GET and DELETE pass them in the query and have no `requestBody`, other methods pass them in the
    body. `omitted` arguments are left out, `optional` ones need not be passed, though the tool
    requires them.
    """
    properties = dict(tool.input["properties"])
    for name in omitted:
        properties.pop(name, None)

    all_required = tool.input.get("required", ())
    excluded = {*omitted, *optional}
    required = [name for name in all_required if name not in excluded]
    if method not in ("GET", "DELETE"):
        return _json_body(
            {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            }
        )

    parameters = []
    for name, schema in properties.items():
        parameter = {"name": name, "in": "query", "required": name in required}
        if schema.get("type") in ("object", "array", None):
            parameter["content"] = {_JSON: {"schema": schema}}
        else:
            parameter["schema"] = schema
        parameters.append(parameter)
    return {"parameters": parameters}


def _path_parameters(path: str) -> list[dict[str, Any]]:
    """Return the parameters in braces in a path, in order; [] if there are none."""
    parameters = []
    for name in re.findall(r"{(\w+)}", path):
        parameter = {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _TEXT | {"minLength": 1},
        }
        parameters.append(parameter)
    return parameters


def _header_parameter(name: str) -> dict[str, Any]:
    """Return the parameter for a header, which `openapi.toml` must describe."""
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": _TEMPLATES["headers"][name],
        "schema": _TEXT,
    }


def _json_body(schema: Schema) -> dict[str, Any]:
    """Return the parts `parameters`, which is empty, and `requestBody` for a body of JSON."""
    body = {
        "required": True,
        "content": {_JSON: {"schema": schema}},
    }
    return {"parameters": [], "requestBody": body}


def _json_response(schema: Schema) -> dict[str, Any]:
    """Return the response of an operation that answers with JSON."""
    return _response(_JSON, schema)


def _response(media_type: str, schema: Schema) -> dict[str, Any]:
    """Return the response of success of an operation, with a body of this media type."""
    return {
        "description": "Success",
        "content": {media_type: {"schema": schema}},
    }


def _add_descriptions(operation: Operation) -> None:
    """Add the descriptions that the tool of an operation leaves out, from `meanings`.

    A model understands these parameters and fields without a description. `meanings` is a table of
    `openapi.toml`. Changes the operation, and no schema of a tool. A field that the table lacks
    gets "". Raises KeyError for a parameter that it lacks.
    """
    meanings = _TEMPLATES["meanings"]
    for parameter in operation["parameters"]:
        schema = parameter.get("schema") or parameter["content"][_JSON]["schema"]
        if "description" not in parameter and "description" not in schema:
            parameter["description"] = meanings[parameter["name"]]

    content = operation.get("requestBody", {}).get("content", {})
    body_schema = content.get(_JSON, {}).get("schema", {})
    fields = body_schema.get("properties")
    if not fields:
        return

    described = {}
    for name, field_schema in fields.items():
        described[name] = {"description": meanings.get(name, ""), **field_schema}
    content[_JSON]["schema"] = body_schema | {"properties": described}


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
