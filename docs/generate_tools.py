"""Write docs/tools.md from the tools themselves.

    python docs/generate_tools.py            write the page
    python docs/generate_tools.py --check    end with 1 when the page is not what would be written

Prose stands below. Names, defaults, descriptions and fields are what a client is told.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simplemem import errors
from simplemem.faces.face import PROFILES, Tool, choose
from simplemem.server.calls import PROMPTS

PAGE = Path(__file__).resolve().parent / "tools.md"
WIDTH = 120

INTRODUCTION = """
# The tools an agent sees

<!-- Written by docs/generate_tools.py. Change the prose there; the rest is what the tools say. -->

`simplemem serve` offers twelve tools, a resource for each memory, three prompts, and instructions for the model. How a
client is configured: [connect.md](connect.md). `simplemem tools` lists what an agent sees, and how many tokens it takes.

**Every answer comes twice**: as Markdown, sized for a context window, and as structured content that follows the tool's
output schema. Neither refers to the other; a client may show its model whichever it likes. Data
is at most 1.3 times as large as text (`python bench/answers.py VAULT` prints both): no field is empty that need not be,
links are unique names, hashes in lists, hits and histories have twelve digits, and a section comes without the rest of
its note. `notes_are` repeats that notes are data; a `hint` says how to take back what was done.

**Arguments are forgiven their form, not their meaning.** JSON sent as a string is read, `null` is the same as absent,
numbers may be strings, tags may be a map, a list or `"a, b"`, a name may wear `[[ ]]`, `.md` or `memory://`. The
words that models use are understood (`q`, `folder`, `top_k`, `find` and `replace`, `add` and `remove` for tags); another
argument is refused, with what may be meant, and so is one that is given twice.

**A name** is a path in the vault without `.md` (`people/Ida Marsh`), or a bare file name, a title or an alias where that
is unique. An ambiguous name is an error that lists the memories it could mean.

**What notes say is data.** It stands between marks that are drawn anew for every answer, so that no note can pretend to
end its own quotation. Facts of the server's own stand outside them.

**Every tool that writes** takes `reason`, kept in the history, and those that change a memory `if_sha256`, the hash (its
first twelve digits will do) that `read_memory` returned: a memory that has changed since is left alone. What a write
displaces can be brought back.
"""

NOTES = {
    "create_memory": """A block of YAML at the start of `content` is taken as metadata, here and in `update_memory`. A tag
that cannot be one (`Ann Lee`) is written as Obsidian allows (`Ann-Lee`); a warning says so, and either finds it.""",
    "search_memories": """In `query`, `"a phrase"`, `-word`, `tag:todo`, `path:people/` and `type:decision` narrow the
search. Filters narrow before anything is ranked. `index.state` is `ready`, `indexing` (the answer is what is there so
far) or `partial`, with a reason; `degraded` says so when a search had to do without meaning.""",
    "read_memory": """A section may be a heading below another (`Log > 2026`) or a block (`^id`). A long memory comes in
pages: `next_section` asks for the next one.""",
    "update_memory": """What is appended stands below a blank line, unless it is an item or a row that continues the last
list or table, or begins with a space. Without `if_sha256`, appends, edits and properties are applied to what is there
now. `content` replaces the whole text: if the client read the note in this session, the hash of that read is
used, so an edit made since then is a `conflict`. If it read nothing, `warnings` say what was replaced, and
`version` undoes it. A change that has already happened succeeds with `changed: false`: a retry is safe. Every
byte outside the change stays as it was.""",
    "change_tag": "A tag in the text (`Call Bob #todo`) is not removed; `warnings` name the lines that have it.",
    "build_context": """What says the same goes in once. Where notes say the same with another number or date, the newest
speaks and the others are quoted beneath it. `left_out` counts passages that found no room.""",
    "move_memory": "Links to the memory are rewritten, each in its own form; nothing else in those notes changes.",
    "delete_memory": "The note goes to the trash: the vault's `.trash/` when Obsidian is set so, else `.simplemem/trash/`.",
    "undo_change": """An undo can be undone. With `by` and `since` it is everything that a client changed, as one change;
unless `preview` is false nothing is done.""",
}

NARROWING = """
### Arguments that narrow

`search_memories`, `build_context` and `list_memories` (without the last two) share these:
"""
SHARED = ("tags", "require_all", "type", "prefix", "since", "until", "link_to", "linked_by")
SAID_ABOVE = (*SHARED, "reason", "if_sha256")

CODES = {
    "invalid": "An argument is wrong, a name cannot be a file, an edit fits nowhere or more than once.",
    "not_found": "There is no such memory, section or version; `candidates` are the nearest.",
    "ambiguous": "The name could mean several memories: `candidates`.",
    "already_exists": "A memory of that name is there.",
    "conflict": "The memory is not what was read. `diff` says what changed, `merged` what both changes make together: "
    "repeat the call with `accept` as its `if_sha256` to write that, or apply the change to what is there now with "
    "`current_sha256`.",
    "too_long": "A name or a text over its limit.",
    "read_only": "The server, the vault or the disk does not allow writing.",
    "unreadable": "The note's header or encoding cannot be understood: it is served and searched, and never rewritten.",
    "unavailable": "The lock, the disk or the index is not there just now: try again.",
}

ERRORS = """
## When something goes wrong

A failure is a result, so that the model sees it: `isError` is true, the text says what to do, and the structured content
is `{"error": {"code", "message", "hint", ...}}`. Codes do not change. Only what no model could mend (a tool that does not
exist, a malformed message) is an error of the protocol.
"""

RESOURCES = """
## Resources and prompts

`memory://{+name}` is a note whole, header and all; `memory://people/Ida%20Marsh` is one. `memory://changes` lists the
memories that changed last, whoever changed them. Subscribe to any of them (`resources/subscribe` of the protocol of
2025, `subscriptions/listen` of 2026), and an edit in Obsidian, in an editor or by another agent is announced as it
happens. Names and tags are completed. Prompts name tools, so a server has those whose tools it has: the profiles `default`
and `simplemem` have all three, the others none.
"""

CHOICE = """
## Profiles and toolsets

`--profile NAME` shows another face of the same vault. `--tools` adds toolsets to a profile, or with a minus takes them
away: `--tools=-core,original`. Two tools of one name never meet: such a choice is refused when the server starts. The
[knowledge graph](graph.md) has the toolset `graph` and the profiles `server-memory` and `memento`.
"""

INSTRUCTIONS = """
## Instructions

The server says this to a model when it connects:
"""


def page() -> str:
    """The whole page, as it should stand in docs/tools.md."""
    tools = choose(PROFILES["default"])
    shared = choose(PROFILES["default"])[0]
    lines = [INTRODUCTION.strip(), "", *_at_a_glance(tools), NARROWING.strip(), ""]
    lines += [*_arguments(shared, SHARED), ""]
    for tool in tools:
        lines += _about(tool)
    lines += [ERRORS.strip(), "", *_codes(), "", RESOURCES.strip(), "", *_prompts(), ""]
    lines += [INSTRUCTIONS.strip(), "", *_quotation(PROFILES["default"].instructions), "", CHOICE.strip(), ""]
    return "\n".join([*lines, *_profiles()]) + "\n"


def _at_a_glance(tools: tuple[Tool, ...]) -> Iterator[str]:
    yield "| Tool | | What a model is told of it |"
    yield "|---|---|---|"
    for tool in tools:
        yield f"| [{tool.name}](#{tool.name}) | {'writes' if tool.writes else 'reads'} | {_cell(tool.description)} |"
    yield ""


def _about(tool: Tool) -> Iterator[str]:
    """A tool's heading, its own arguments, and the fields of its answer."""
    yield f"## {tool.name}\n"
    if own := [name for name in tool.input["properties"] if name not in SAID_ABOVE]:
        yield from _arguments(tool, own)
        yield ""
    if tool.name in NOTES:
        yield from textwrap.wrap(" ".join(NOTES[tool.name].split()), WIDTH)
        yield ""
    yield from textwrap.wrap(f"Answer: {_fields(tool.output or {})}.", WIDTH, break_on_hyphens=False)
    yield ""


def _arguments(tool: Tool, names: Any) -> Iterator[str]:
    yield "| Argument | Default | |"
    yield "|---|---|---|"
    for name in names:
        shape = tool.input["properties"][name]
        needed = name in tool.input.get("required", [])
        default = "needed" if needed else f"`{json.dumps(shape['default'])}`" if "default" in shape else ""
        about = shape.get("description") or " or ".join(f"`{each}`" for each in shape.get("enum", []))
        yield f"| `{name}` | {default} | {_cell(about)} |"


def _fields(schema: Mapping[str, Any]) -> str:
    """The fields of an answer by name: those of the items of a list in brackets, what may be absent with a `?`."""
    said = []
    for name, shape in schema.get("properties", {}).items():
        inside = _fields(shape.get("items", shape))
        absent = "" if name in schema.get("required", []) else "?"
        said.append(f"`{name}`{absent}{f' ({inside})' if inside and name != 'index' else ''}")
    return ", ".join(said)


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
        needed = prompt.input.get("required", ())
        arguments = [f"`{each}`{'' if each in needed else '?'}" for each in prompt.input["properties"]]
        yield f"| `{name}` | {prompt.description} | {', '.join(arguments)} |"


def _quotation(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ">"
        yield from textwrap.wrap(paragraph, WIDTH, initial_indent="> ", subsequent_indent="> ")


def _profiles() -> Iterator[str]:
    yield "| Profile | | Toolsets | Tools |"
    yield "|---|---|---|---|"
    for face in PROFILES.values():
        yield f"| `{face.name}` | {face.title} | {', '.join(face.toolsets)} | {len(choose(face))} |"


def main() -> int:
    written = page()
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == written
        if not current:
            print(f"{PAGE} is not what the tools say now; run: python docs/generate_tools.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(written, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
