"""Write the reference pages that list what the program has: its commands, the tools of each profile, its HTTP routes.

    python docs/generate_reference.py            write the pages
    python docs/generate_reference.py --check    end with 1 if a page differs from the program

Everything on these pages comes from the program. To change a description, change it there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import typer
import typer.main

from simplemem.cli.app import app
from simplemem.profiles.profile import Profile
from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.tools.tool import Tool
from simplemem.web.openapi import document

REFERENCE = Path(__file__).resolve().parent / "reference"
SERVE_HELP = REFERENCE.parent.parent / "simplemem" / "cli" / "serve_help.txt"
_GENERATED = "<!-- Written by docs/generate_reference.py from the program. -->"


def pages() -> dict[Path, str]:
    """Return each generated page with the text it should have."""
    texts = {
        REFERENCE / "cli.md": _cli_page(),
        REFERENCE / "rest.md": _rest_page(),
        SERVE_HELP: _serve_help(),
    }
    for profile in built_in_profiles().values():
        texts[REFERENCE / "profiles" / f"{profile.name}.md"] = _profile_page(profile)
    return texts


# ------------------------------------------------------------------ the command line


def _cli_page() -> str:
    program: Any = typer.main.get_command(app)
    lines = ["# Command line", "", _GENERATED, ""]
    lines += [
        "Each command except `serve` accepts `--json`, which prints JSON for programs. `--help` describes a command. The"
    ]
    lines += ["exit code is 0 for success, 1 for a failure, and 2 for wrong arguments.", ""]
    panel = ""
    for command_panel, name, summary in program.summaries(None):
        if command_panel != panel:
            panel = command_panel
            lines += [f"## {panel}", ""]
        lines += _command_lines(f"simplemem {name}", program.commands[name], summary, level=3)
    return "\n".join(lines).rstrip() + "\n"


def _command_lines(path: str, command: Any, summary: str, level: int) -> Iterator[str]:
    """Yield the section of a command and, for a group, those of its subcommands."""
    yield f"{'#' * level} {path}"
    yield ""
    yield _description(command) or summary
    yield ""
    context = typer.Context(command, info_name=path)
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            if subcommand is not None and not subcommand.hidden:
                yield from _command_lines(f"{path} {name}", subcommand, "", level + 1)
        return

    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    yield ""
    yield from _parameter_rows(command, context)
    yield from _example_lines(command)


def _serve_help() -> str:
    """Return the help of `serve`, which `simplemem.__main__` prints without loading the command line."""
    program: Any = typer.main.get_command(app)
    command = program.commands["serve"]
    context = typer.Context(
        command, info_name="simplemem serve", terminal_width=78, **command.context_settings
    )
    return f"{command.get_help(context)}\n"


def _description(command: Any) -> str:
    """Return the help of a command as Markdown paragraphs."""
    paragraphs = (command.help or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).strip()


def _parameter_rows(command: Any, context: typer.Context) -> Iterator[str]:
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [record for record in records if record is not None]
    if not rows:
        return
    yield "| Argument or option | Meaning |"
    yield "|---|---|"
    for spelling, meaning in rows:
        yield f"| `{_cell(' '.join(spelling.split()))}` | {_cell(' '.join(meaning.split()))} |"
    yield ""


def _example_lines(command: Any) -> Iterator[str]:
    examples = [
        line.removeprefix("$ ")
        for line in (command.epilog or "").splitlines()
        if line.startswith("$ ")
    ]
    if examples:
        yield "```sh"
        yield from examples
        yield "```"
        yield ""


# ------------------------------------------------------------------ the tools of the profiles


def _profile_page(profile: Profile) -> str:
    tools = choose_tools(profile)
    count = "one tool" if len(tools) == 1 else f"{len(tools)} tools"
    lines = [f"# Profile {profile.name}", "", _GENERATED, "", f"{profile.title}."]
    lines += ["", "```sh", f"simplemem serve --profile {profile.name}", "```", ""]
    lines += [
        f"The profile has {count}. The server sends the descriptions below to the agent's model.",
        "",
    ]
    for tool in tools:
        lines += _tool_lines(tool)
    if profile.instructions:
        lines += [
            "## Instructions",
            "",
            "The server sends these instructions when a client connects:",
            "",
        ]
        lines += _quoted(profile.instructions)
    return "\n".join(lines).rstrip() + "\n"


def _tool_lines(tool: Tool) -> Iterator[str]:
    listing = tool.listing()
    yield f"## {tool.name}"
    yield ""
    yield from _quoted(str(listing.get("description") or tool.description))
    yield ""
    effects = ["changes notes" if tool.writes else "reads only"]
    if tool.deletes:
        effects.append("may delete")
    yield f"Effect: {', '.join(effects)}."
    yield ""
    properties = tool.input.get("properties", {})
    if properties:
        yield "| Argument | Type | Default | Meaning |"
        yield "|---|---|---|---|"
        for name, shape in properties.items():
            yield f"| `{name}` | {_type_of(shape)} | {_default_of(tool, name, shape)} | {_cell(_meaning_of(shape))} |"
        yield ""
    fields = (tool.output or {}).get("properties", {})
    if fields:
        yield f"Fields of the result: {', '.join(f'`{name}`' for name in fields)}."
        yield ""


def _default_of(tool: Tool, name: str, shape: Mapping[str, Any]) -> str:
    if name in tool.input.get("required", []):
        return "required"
    return f"`{json.dumps(shape['default'])}`" if "default" in shape else ""


def _meaning_of(shape: Mapping[str, Any]) -> str:
    values = " or ".join(f"`{value}`" for value in shape.get("enum", []))
    description = str(shape.get("description") or "")
    return ": ".join(part for part in (description, values) if part)


def _type_of(shape: Mapping[str, Any]) -> str:
    """Return the JSON type of a schema in words."""
    variants = shape.get("anyOf") or shape.get("oneOf")
    if variants:
        names = [_type_of(variant) for variant in variants]
        return " or ".join(dict.fromkeys(name for name in names if name != "null"))
    kind = shape.get("type", "any")
    if kind == "array":
        return f"array of {_type_of(shape.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


# ------------------------------------------------------------------ HTTP


def _rest_page() -> str:
    api = document()
    lines = ["# HTTP routes", "", _GENERATED, ""]
    lines += [
        "`simplemem serve --http` serves these routes in addition to MCP. The machine-readable form is"
    ]
    lines += [
        "[openapi.json](../openapi.json), which the server also serves at `/api/v1/openapi.json` (requires a token).",
        "",
        "A parameter in `path`, `query` or `header` belongs to that part of the request. A parameter in `body` is a field of the",
        "JSON object that the request sends. A parameter of the type `object` or `array` in a query is written as JSON. Required",
        "parameters are marked with *.",
        "",
        "An error is a problem document (RFC 9457, `application/problem+json`) with these fields:",
        "",
    ]
    lines += _rows_of_fields(
        api["components"]["responses"]["Problem"]["content"]["application/problem+json"]["schema"]
    )
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            if method != "parameters":
                lines += _operation_lines(f"{method.upper()} {path}", operation)
    return "\n".join(lines).rstrip() + "\n"


def _operation_lines(route: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {route}"
    yield ""
    for text in (operation.get("summary"), operation.get("description")):
        if text:
            yield text
            yield ""
    rows = [*_parameters_of(operation), *_fields_of_body(operation)]
    if rows:
        yield "| Parameter | In | Type | Meaning |"
        yield "|---|---|---|---|"
        for parameter in rows:
            mark = "*" if parameter.is_required else ""
            shape = parameter.shape
            meaning = _cell(parameter.meaning or _meaning_of(shape))
            yield f"| `{parameter.name}`{mark} | {parameter.place} | {_type_of(shape)} | {meaning} |"
        yield ""
    content = operation.get("requestBody", {}).get("content", {})
    if "text/markdown" in content:
        yield "The body may also be the Markdown text of the note, with `Content-Type: text/markdown`."
        yield ""
    elif (
        "application/json" in content and "properties" not in content["application/json"]["schema"]
    ):
        yield "The body is a JSON object with the arguments of the tool."
        yield ""
    answers = operation.get("responses", {})
    if answers:
        yield "| Status | Response |"
        yield "|---|---|"
        for status, answer in answers.items():
            yield f"| {status} | {_cell(str(answer.get('description') or 'Problem document'))} |"
        yield ""


class _Parameter(NamedTuple):
    """A row of the table of a route."""

    name: str
    place: str
    shape: Mapping[str, Any]
    meaning: str
    is_required: bool


def _parameters_of(operation: Mapping[str, Any]) -> Iterator[_Parameter]:
    """Yield the parameters in the path, the query and the headers."""
    for parameter in operation.get("parameters", []):
        shape = parameter.get("schema") or parameter["content"]["application/json"]["schema"]
        meaning = parameter.get("description", "")
        yield _Parameter(
            parameter["name"], parameter["in"], shape, meaning, bool(parameter.get("required"))
        )


def _fields_of_body(operation: Mapping[str, Any]) -> Iterator[_Parameter]:
    """Yield the fields of the JSON object that a request sends."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    for name, shape in schema.get("properties", {}).items():
        yield _Parameter(name, "body", shape, "", name in schema.get("required", ()))


def _rows_of_fields(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of the fields of a schema."""
    yield "| Field | Type | Meaning |"
    yield "|---|---|---|"
    for name, shape in schema["properties"].items():
        yield f"| `{name}` | {_type_of(shape)} | {_cell(_meaning_of(shape))} |"
    yield ""


# ------------------------------------------------------------------ shared


def _quoted(text: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        yield f"> {line}".rstrip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> int:
    texts = pages()
    stale = [
        page
        for page, text in texts.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    obsolete = sorted(set((REFERENCE / "profiles").glob("*.md")) - set(texts))
    if "--check" in sys.argv[1:]:
        for page in [*stale, *obsolete]:
            print(
                f"{page} differs from the program; run: python docs/generate_reference.py",
                file=sys.stderr,
            )
        return 1 if stale or obsolete else 0

    for page in obsolete:
        page.unlink()
    for page in stale:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(texts[page], encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
