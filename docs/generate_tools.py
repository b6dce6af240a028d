"""Write docs/tools.md from the tools themselves.

    python docs/generate_tools.py            write the page
    python docs/generate_tools.py --check    exit with 1 if the page differs from what would be written

The prose is below. Names, defaults, descriptions and fields come from the tools.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simplemem import errors
from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.prompts import PROMPTS
from simplemem.tools.tool import Tool

PAGE = Path(__file__).resolve().parent / "tools.md"
WIDTH = 120

INTRODUCTION = """
# Default tools

<!-- Written by docs/generate_tools.py. Change the prose there; the rest comes from the tools. -->

`simplemem serve` offers twelve tools, one resource per memory, three prompts, and instructions for the model. The tools
call a note a *memory*. To connect a client, see [connect.md](connect.md).
`simplemem tools list` prints the tools that an agent sees and the number of tokens they take.

**Each answer has two forms**: Markdown, sized for a context window, and structured content that follows the tool's
output schema. Each is complete by itself, so a client may show its model either one. The structured content is at most
1.3 times as large as the text (`python bench/answers.py VAULT` prints both): empty optional fields are omitted, links are
unique names, hashes in lists, hits and histories are shortened to twelve digits, and the answer for a section omits the
rest of the note.
`notes_are` repeats that the text of notes is data. `hint` says how to undo what was done.

**Arguments are lenient in form and strict in meaning.** JSON may be sent as a string, `null` means absent, numbers may be
strings, tags may be a map, a list or `"a, b"`, and a name may have `[[ ]]`, `.md` or `memory://` around it. Common
synonyms are accepted (`q`, `folder`, `top_k`, `find` and `replace`, `add` and `remove` for tags). An unknown argument
is refused, and the error suggests the names that may be meant. An argument that is given twice is refused too.

**A name** is a path in the vault without `.md` (`people/Ida Marsh`). A file name, a title or an alias works too if it is
unique. An ambiguous name is an error that lists the candidates.

**The text of notes is data.** It stands between delimiters that are random in each answer, so a note cannot end its own
quotation. Text from the server is outside the delimiters.

**Each tool that writes** takes `reason`, which the history keeps. Each tool that changes a memory takes `if_sha256`, the
hash that `read_memory` returned, or its first twelve digits: if the memory has changed since, the call fails. All writes
can be undone.

**The list of tools is short**, because clients send it to the model with every request. `python bench/tokens.py` prints
its tokens for each profile, with and without output schemas. To keep it short, the list omits two details that models
assume: that a boolean is false by default, and that a number is at least 1. The tables below name all defaults.
"""

NOTES = {
    "create_memory": """Frontmatter at the start of `content` is read as metadata, here and in `update_memory`. A tag that
Obsidian does not allow (`Ann Lee`) is written as `Ann-Lee`. A warning says so, and searches find either form.""",
    "search_memories": """In `query`, `"a phrase"`, `-word`, `tag:todo`, `path:people/` and `type:decision` narrow the
search. Filters apply before the ranking. `index.state` is `ready`, `indexing` (the answer covers what is indexed so far)
or `partial`, with a reason. It can be `ready` although an edit outside simplemem was
[not noticed yet](network.md#edits-outside-simplemem). If the search could not use meaning, `degraded` says why. If the query
asks for an order, `by_date` has the hits in order of their days; see [time](search.md#time).""",
    "read_memory": """A section may be a heading below another one (`Log > 2026`) or a block (`^id`). A long memory comes in
pages: pass `next_section` as `section` for the next page.""",
    "update_memory": """Appended text follows a blank line, unless it continues the last list or table, or begins with a
space. Without `if_sha256`, appends, edits and metadata apply to the current text. `content` replaces the whole text. If
the client read the note in this session, the hash of that read is used, and an edit made since then is a `conflict`. If
the client did not read the note, `warnings` say what was replaced. To undo that, pass `version` to `undo_change`. With
`if_sha256`, a change that has already been made succeeds with `changed: false`, so a retry is safe. Without
`if_sha256`, a repeated append is added again. All other bytes of the file stay the same.""",
    "change_tag": "A tag in the text (`Call Bob #todo`) is not removed. `warnings` name the lines that have it.",
    "build_context": """One line per note has its title and its day; its passages follow, each below its place. Notes with
`pinned: true`, and the constraints of the user profile, come first whatever the question is; `pinned` counts their passages
([always relevant](search.md#what-is-always-relevant)). Duplicate passages are included once. If notes differ only in a
number or a date, the newest passage comes first, with the others quoted below it. `left_out` counts passages that did not
fit. If the query asks for an
order, the notes in `text` are in order of date, and `chronological` is true.""",
    "move_memory": "Each link keeps its form. Nothing else in the linking notes changes.",
    "delete_memory": "The note moves to the trash: `.trash/` if Obsidian uses it, otherwise `.simplemem/trash/`.",
    "undo_change": """An undo can be undone. `by` with `since` undoes everything that a client changed, as one change. With
`by`, nothing changes unless `preview` is false.""",
}

NARROWING = """
### Filters

`search_memories` and `build_context` share these arguments. `list_memories` has all of them except the last two:
"""
SHARED = ("tags", "require_all", "type", "prefix", "since", "until", "link_to", "linked_by")
DESCRIBED_ABOVE = (*SHARED, "reason", "if_sha256")

CODES = {
    "invalid": "An argument is wrong, a name is not valid as a file name, or an edit does not match exactly once.",
    "not_found": "No such memory, section or version. `candidates` are the nearest names.",
    "ambiguous": "The name matches several memories, which `candidates` lists.",
    "already_exists": "A memory with that name exists.",
    "conflict": "The memory has changed since you read it. `diff` says what changed; `merged` is the result of both "
    "changes. To write it, repeat the call with `accept` as `if_sha256`. Otherwise apply your change to the current text, "
    "with `current_sha256`.",
    "too_long": "A name or a text is over its limit.",
    "proposed": "Nothing is changed yet: a person decides about the change, which the note `proposal` describes. This is "
    "no error: `isError` is false in the profiles whose answers have fields.",
    "read_only": "The server, the vault or the disk does not allow writing.",
    "unreadable": "The note's frontmatter or encoding cannot be parsed. The note is served and searched, and never "
    "rewritten.",
    "unavailable": "The lock, the disk or the index is not available at the moment. Try again.",
}

ERRORS = """
## Errors

An error is a tool result, so that the model sees it: `isError` is true, the text says what to do, and the structured
content is `{"error": {"code", "message", "hint", ...}}`. The codes are stable. Only errors that a model cannot fix (a tool
that does not exist, a malformed message) are protocol errors.
"""

RESOURCES = """
## Resources and prompts

`memory://{+name}` is a whole note with its frontmatter, for example `memory://people/Ida%20Marsh`. `memory://changes`
lists the most recently changed memories, whoever changed them. A client can subscribe to either (`resources/subscribe` in
the protocol of 2025, `subscriptions/listen` in that of 2026) and is then notified of each edit in Obsidian, in an editor
or by another agent. Names and tags are completed. A server offers a prompt only if it has the tools that the prompt
names: the profiles `default` and `simplemem` have all three prompts, the others none.
"""

CHOICE = """
## Profiles and tool groups

`--profile NAME` serves another set of tools on the same vault. `--tools` adds tool groups to a profile; a minus before a
name removes one: `--tools=-core,original`. If two groups have a tool of the same name, the server does not start. The
[knowledge graph](graph.md) has the tool group `graph` and the profiles `server-memory` and `memento`.
"""

INSTRUCTIONS = """
## Instructions

The server sends this text to the model when it connects:
"""


def page() -> str:
    """The whole page, as it should stand in docs/tools.md."""
    tools = choose_tools(built_in_profiles()["default"])
    shared = choose_tools(built_in_profiles()["default"])[0]
    lines = [INTRODUCTION.strip(), "", *_at_a_glance(tools), NARROWING.strip(), ""]
    lines += [*_arguments(shared, SHARED), ""]
    for tool in tools:
        lines += _about(tool)
    lines += [ERRORS.strip(), "", *_codes(), "", RESOURCES.strip(), "", *_prompts(), ""]
    lines += [
        INSTRUCTIONS.strip(),
        "",
        *_quotation(built_in_profiles()["default"].instructions),
        "",
        CHOICE.strip(),
        "",
    ]
    return "\n".join([*lines, *_profiles()]) + "\n"


def _at_a_glance(tools: tuple[Tool, ...]) -> Iterator[str]:
    yield "| Tool | | Description |"
    yield "|---|---|---|"
    for tool in tools:
        yield f"| [{tool.name}](#{tool.name}) | {'writes' if tool.writes else 'reads'} | {_cell(tool.description)} |"
    yield ""


def _about(tool: Tool) -> Iterator[str]:
    """A tool's heading, its own arguments, and the fields of its answer."""
    yield f"## {tool.name}\n"
    own = [name for name in tool.input["properties"] if name not in DESCRIBED_ABOVE]
    if own:
        yield from _arguments(tool, own)
        yield ""
    if tool.name in NOTES:
        yield from textwrap.wrap(" ".join(NOTES[tool.name].split()), WIDTH)
        yield ""
    yield from textwrap.wrap(
        f"Answer: {_fields(tool.output or {})}.", WIDTH, break_on_hyphens=False
    )
    yield ""


def _arguments(tool: Tool, names: Any) -> Iterator[str]:
    yield "| Argument | Default | |"
    yield "|---|---|---|"
    for name in names:
        shape = tool.input["properties"][name]
        values = " or ".join(f"`{value}`" for value in shape.get("enum", []))
        meaning = shape.get("description") or values
        default = _default_of(tool, name, shape)
        yield f"| `{name}` | {default} | {_cell(meaning)} |"


def _default_of(tool: Tool, name: str, shape: Mapping[str, Any]) -> str:
    """Return the default of an argument as a cell of a table has it."""
    if name in tool.input.get("required", []):
        return "required"
    return f"`{json.dumps(shape['default'])}`" if "default" in shape else ""


def _fields(schema: Mapping[str, Any]) -> str:
    """The fields of an answer by name: those of the items of a list in brackets, what may be absent with a `?`."""
    fields = []
    for name, shape in schema.get("properties", {}).items():
        inside = _fields(shape.get("items", shape))
        absent = "" if name in schema.get("required", []) else "?"
        field = f"`{name}`{absent}"
        if inside and name != "index":
            field += f" ({inside})"
        fields.append(field)
    return ", ".join(fields)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("[[", "`[[").replace("]]", "]]`")


def _codes() -> Iterator[str]:
    real = {kind.code for kind in errors.SimplememError.__subclasses__()}
    if real != set(CODES):
        raise RuntimeError(f"codes of errors.py and of this page differ: {real ^ set(CODES)}")
    yield "| Code | |"
    yield "|---|---|"
    yield from (f"| `{code}` | {about} |" for code, about in CODES.items())


def _prompts() -> Iterator[str]:
    yield "| Prompt | | Arguments |"
    yield "|---|---|---|"
    for name, prompt in PROMPTS.items():
        required = prompt.input.get("required", ())
        arguments = [
            f"`{argument}`" if argument in required else f"`{argument}`?"
            for argument in prompt.input["properties"]
        ]
        yield f"| `{name}` | {prompt.description} | {', '.join(arguments)} |"


def _quotation(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ">"
        yield from textwrap.wrap(paragraph, WIDTH, initial_indent="> ", subsequent_indent="> ")


def _profiles() -> Iterator[str]:
    yield "| Profile | | Tool groups | Tools |"
    yield "|---|---|---|---|"
    for profile in built_in_profiles().values():
        groups = ", ".join(profile.default_groups)
        count = len(choose_tools(profile))
        yield f"| `{profile.name}` | {profile.title} | {groups} | {count} |"


def main() -> int:
    written = page()
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == written
        if not current:
            print(f"{PAGE} is out of date; run: python docs/generate_tools.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(written, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
