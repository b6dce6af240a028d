"""Write docs/tools.md from the server itself: its list of tools, and what it answers about the example vault.

    python docs/generate_tools.py            write the page
    python docs/generate_tools.py --check    end with 1 when the page is not what would be written

Prose stands below. Names, types, defaults, descriptions, fields and every answer come from a server that the official
client talks to. What differs from one run to the next (marks, hashes and times of what is written here) is put in
place of itself by something that stays.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = REPOSITORY / "docs" / "tools.md"
WIDTH = 100
_TOUCHED = 1_772_366_400  # 2026-03-01T12:00:00Z
_WRITTEN = "2026-03-02"
_MARK = "5f2c81d0"
_PATIENCE = 60

INTRODUCTION = """
# The tools an agent sees

<!-- Written by docs/generate_tools.py. Change the prose there; the rest is what the server says. -->

`simplemem serve` offers twelve tools, a resource for each memory, three prompts, and instructions for the model. This
page is for people who write agents, or who want to know what theirs can do; [connect.md](connect.md) says how a
client is told of the server.

**Every answer comes twice**: as Markdown, sized for a context window, and as structured content that follows the
tool's output schema. Neither refers to the other; a client may show its model whichever it likes.

**Arguments are forgiven their form, not their meaning.** JSON sent as a string is read, `null` is the same as absent,
numbers may be strings, tags may be a map, a list or `"a, b"`, a name may wear `[[ ]]`, `.md` or `memory://`. An
argument nobody knows is passed over by a tool that reads, and said; a tool that writes then does nothing.

**A name** is a path in the vault without `.md` (`people/Ida Marsh`). Where it is unique, a bare file name, a title or
an alias will do. A name that could mean several memories is an error that lists them.

**What notes say is data.** It stands between marks that are drawn anew for every answer, so that no note can
pretend to end its own quotation. Facts of the server's own stand outside them.
"""

EXAMPLES = """
Every example below was run, in this order, on a copy of [vault-example](../vault-example). Marks, and the hashes and
times of what the examples themselves wrote, have been replaced by fixed ones.
"""

FORMS = {"string": "text", "integer": "number", "object": "object", "array": "list", "boolean": "true or false"}

MEANINGS = {
    "append": "added at the end, on a line of its own",
    "budget_tokens": "how long the pack may be, at least 50; more than 20000 is taken as 20000",
    "content": "Markdown",
    "cursor": "where to go on",
    "limit": "how many at most; more than {most} is taken as {most}",
    "metadata": "properties",
    "mode": "by words and meaning, by words alone, or by meaning alone",
    "name": "name, title or alias",
    "new_name": "the new path; the folder is made if need be",
    "overwrite": "replace a memory of that name, which stays in the history",
    "query": "a question or words",
    "reason": "why, in a few words; kept in the history",
    "sort": "dates: newest first",
    "tags": "a map",
    "type": "only memories of this `type:`",
    "until": "changed before; written as `since` is",
}
"""For arguments that the list shown to a model leaves to their names."""

MOST = {"search_memories": 50, "get_backlinks": 50, "list_memories": 200, "memory_history": 200}

NOTES = {
    "search_memories": """
In `query`, `"a phrase"`, `-word`, `tag:todo`, `path:people/` and `type:decision` narrow the search; anything else is
only words. Filters narrow before anything is ranked, so a filtered search returns as many hits as there are. With an
empty query the newest memories come first. `index.state` is `ready`, `indexing` (the first index is still being made:
the answer is what is there so far) or `partial`, with a reason; `degraded` says so when a search had to do without
meaning. `explain` gives the numbers behind each rank: place, score and share of the best in every leg, the words of the
question that a memory holds and lacks, what each filter removed, and what was not searched.
""",
    "read_memory": """
`section` is a heading, one below another (`Log > 2026`, as hits say it), or a block (`^id`). A long memory comes in
pages: `next_section` is what to ask for next, null on the last page. Keep `sha256` for a change.
""",
    "create_memory": """
`created` and `modified` are set by the server. A name that is taken is refused with `already_exists`, unless
`overwrite` is true.
""",
    "update_memory": """
Give one of `content`, `append` and `edits`; `metadata` may come with any of them, or alone. With `if_sha256` (the
first twelve digits are enough) a note that has changed since is left alone, and the answer is a `conflict`, with the
difference and a merge, where the text that was read is known ([conflicts](conflicts.md)). Without it, appends, edits
and properties are applied to what is there now. A change that has already happened succeeds, with `changed: false`: a
retry is safe. Every byte outside the change stays as it was.
""",
    "change_tag": """
The note keeps the notation it has: a list, nested `status/done`, or a map.
""",
    "list_memories": """
To find something by what it says, search. `next_cursor` is null on the last page.
""",
    "get_backlinks": """
Explicit links come first, each with the line it stands in and its `form` (wiki, markdown, embed, property); then
memories about the same thing.
""",
    "build_context": """
The pack keeps to its budget as `tokenizer` counts (that of the embedder, else an estimate; a model's own may count
otherwise), and names the source and the line of each passage. What says the same goes in once, with the other places
beside it. Where notes say the same sentence with another number or date, or with a *not*, the newest speaks and the
others are quoted beneath it (`older: "…"`), word for word. `left_out` counts passages that found no room, `duplicates`
those that say the same.
""",
    "move_memory": """
Links to the memory are rewritten, each in its own form and in the style of the vault; nothing else in those notes
changes.
""",
    "delete_memory": """
The note goes to the trash: the vault's own `.trash/` when Obsidian is set so, else `.simplemem/trash/`. `version` is
what `undo_change` takes to bring it back.
""",
    "memory_history": """
`who` is the client as it names itself, with its version. Edits by other programs have no line of their own; but a text
that one of our changes took the place of is kept, whoever wrote it, and `diff` compares it with what came after.
""",
    "undo_change": """
An undo is a change of its own, and can be undone.

With `by` and `since` it is everything that a client changed, as one change. Unless `preview` is false nothing is done:
`notes` says what would become of each memory, `left` which are left as they are because somebody else has changed them
since. [History and undo](history.md#everything-a-client-changed) has the rules.
""",
}

FULMAR = "flights/Flight 5 Fulmar"
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search_memories", {"query": "what is the corrected height of the record flight", "limit": 1}),
    ("read_memory", {"name": "Dipper", "section": "How high"}),
    (
        "create_memory",
        {
            "name": FULMAR,
            "content": "Planned for 18 April, on [[Hydrogen for lift|hydrogen]].\n",
            "metadata": {"title": "Flight 5, Fulmar", "tags": {"flight": True, "status": "planned"}},
        },
    ),
    ("update_memory", {"name": FULMAR, "edits": [{"old": "18 April", "new": "25 April"}], "if_sha256": "{sha256}"}),
    ("change_tag", {"name": FULMAR, "tags": {"status": "confirmed", "todo": True}}),
    ("list_memories", {"prefix": "decisions/", "tags": {"status": "active"}}),
    ("get_backlinks", {"name": "Hydrogen for lift", "kinds": ["link"], "limit": 3}),
    ("build_context", {"query": "why did we give up helium", "budget_tokens": 150}),
    ("move_memory", {"name": "Hugh Pettifer", "new_name": "people/Hugh Pettifer (chase)"}),
    ("delete_memory", {"name": "Old packing list"}),
    ("memory_history", {"name": FULMAR}),
    ("undo_change", {"version": "{version}"}),
)
BY_HAND = (b"25 April", b"2 May")
CONFLICT = ("update_memory", {"name": FULMAR, "append": "Ask the lifeboat crew.", "if_sha256": "{read}"})

CODES = {
    "invalid": ("The request itself is wrong: an argument, a name that cannot be a file, an edit that fits nowhere "
                "or more than once.", "Correct the call; the message names what is wrong."),
    "not_found": ("There is no such memory, section or version.", "Take one of `candidates`, or search."),
    "ambiguous": ("The name could mean several memories.", "Take one of `candidates`, by its whole name."),
    "already_exists": ("A memory of that name is there.", "Update it, or choose another name."),
    "conflict": ("The note is not what the caller had read. `diff` says what changed, and `merged` what your change and "
                 "theirs make together, where the text that was read is known.", "Where they fit together, repeat the "
                 "call with `accept` as its `if_sha256`: it writes the merge that was shown, and only that. Else apply "
                 "the change to what is there now, and pass `current_sha256`."),
    "too_long": ("A name or a text over its limit.", "Split it into memories that link to each other."),
    "read_only": ("The server, the vault or the disk does not allow writing.", "Tell the person."),
    "unreadable": ("The note's header or encoding cannot be understood. It is served and searched, and never "
                   "rewritten.", "Leave it to a person with an editor; `line` says where."),
    "unavailable": ("Something needed is not there just now: the lock, the disk, the index.", "Try again, then tell "
                    "the person."),
}  # fmt: skip

ERRORS = """
## When something goes wrong

A failure is a result, so that the model sees it: `isError` is true, the text says what to do, and the structured
content is `{"error": {"code", "message", "hint", ...}}`. Codes do not change. Only what no model could mend (a tool
that does not exist, a malformed message) is an error of the protocol.
"""

RESOURCES = """
## Resources

`memory://{+name}` is a note whole, header and all, as `text/markdown`; `memory://people/Ida%20Marsh` is one. They are
listed in pages, last changed first. `memory://changes` is the list of the memories that changed last, whoever changed
them; a memory that is itself called `changes` is `memory://changes.md`.

Subscribe to any of them (`resources/subscribe` of the protocol of 2025, `subscriptions/listen` of 2026), and an edit in
Obsidian, in an editor or by another agent is announced as it happens.

## Prompts

Names are completed for `topic` and in the template, tags for `tag`.
"""

INSTRUCTIONS = """
## Instructions

The server says this to a model when it connects. It may be worth repeating in your own words in a project's
instructions; see [what to tell the model](connect.md#what-to-tell-the-model).
"""

CHOICE = """
## Profiles and toolsets

`--profile NAME` shows another face of the same vault; a client sees one of them at a time. `--tools` adds toolsets to a
profile, or with a minus takes them away: `--tools=-core,original`. Two tools of one name never meet: such a choice is
refused when the server starts.

The toolset `graph`, and the profiles `server-memory` and `memento`, are described on the page about the
[knowledge graph](graph.md), the profile `self-improving` and its toolsets on that about
[what an agent learns](self-improving.md).
"""


class Fixed:
    """Puts what stays in place of what differs from run to run."""

    def __init__(self) -> None:
        self._hashes: dict[str, str] = {}
        self._days = {_today()}

    def learn(self, data: Mapping[str, Any]) -> None:
        """The hashes in the answer of a tool that writes are of this run."""
        for key in ("sha256", "previous_sha256"):
            found = data.get(key)
            if isinstance(found, str) and found not in self._hashes:
                self._hashes[found] = hashlib.sha256(f"example {len(self._hashes)}".encode()).hexdigest()

    def __call__(self, text: str) -> str:
        for real, shown in self._hashes.items():
            text = text.replace(real, shown).replace(real[:12], shown[:12])
        text = re.sub(r"(?<=marks )[0-9a-f]{8}\b|(?<=<note )[0-9a-f]{8}\b|(?<=</note )[0-9a-f]{8}\b", _MARK, text)
        for day in self._days | {_today()}:
            text = re.sub(rf"\b{day}T[\d:.]+\d", f"{_WRITTEN}T09:00:00", text).replace(day, _WRITTEN)
        return text


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


async def page() -> str:
    """The whole page, as it should stand in docs/tools.md."""
    import anyio
    import mcp_types
    from mcp import Client, StdioServerParameters

    with tempfile.TemporaryDirectory() as room, anyio.fail_after(_PATIENCE):
        vault = _example_vault(Path(room))
        env = {name: value for name, value in os.environ.items() if not name.startswith("SIMPLEMEM_")}
        env |= {"XDG_CONFIG_HOME": room, "TZ": "UTC"}
        # Answers are those of a whole index.
        making = [sys.executable, "-m", "simplemem", "index", "--vault", str(vault)]
        subprocess.run(making, env=env, check=True, stdout=subprocess.DEVNULL)
        command = ["-m", "simplemem", "serve", "--vault", str(vault)]
        server = StdioServerParameters(command=sys.executable, args=command, env=env)
        about = mcp_types.Implementation(name="claude-ai", version="1.2")
        async with Client(server, client_info=about) as client:
            return "\n".join(await _page(client, vault)) + "\n"


def _example_vault(room: Path) -> Path:
    vault = room / "vault-example"
    shutil.copytree(REPOSITORY / "vault-example", vault, ignore=shutil.ignore_patterns(".simplemem"))
    for path in vault.rglob("*"):
        os.utime(path, (_TOUCHED, _TOUCHED))
    return vault


async def _page(client: Any, vault: Path) -> list[str]:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    fixed, known = Fixed(), {"sha256": "", "version": ""}
    lines = [INTRODUCTION.strip(), "", EXAMPLES.strip(), "", *_at_a_glance(tools)]
    for name, arguments in CALLS:
        lines += [*_about(tools[name]), *await _example(client, fixed, known, name, arguments)]
    known["read"] = _edit_by_hand(vault / f"{FULMAR}.md")
    lines += [ERRORS.strip(), "", *_codes(), *await _example(client, fixed, known, *CONFLICT, whole=True)]
    lines += [RESOURCES.strip(), "", *_prompts((await client.list_prompts()).prompts)]
    lines += [INSTRUCTIONS.strip(), "", *_quotation(str(client.instructions)), ""]
    return [*lines, CHOICE.strip(), "", *_profiles()]


def _edit_by_hand(file: Path) -> str:
    """Change a note as a person would, and say what its hash was before."""
    before = file.read_bytes()
    file.write_bytes(before.replace(*BY_HAND))
    return hashlib.sha256(before).hexdigest()


def _quotation(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ">"
        yield from textwrap.wrap(paragraph, WIDTH, initial_indent="> ", subsequent_indent="> ")


def _at_a_glance(tools: Mapping[str, Any]) -> Iterator[str]:
    yield "| Tool | | What a model is told of it |"
    yield "|---|---|---|"
    for name, tool in tools.items():
        does = "reads" if tool.annotations.read_only_hint else "writes"
        yield f"| [{name}](#{name}) | {does} | {_cell(tool.description)} |"
    yield ""


def _about(tool: Any) -> Iterator[str]:
    """A tool's heading, its arguments and its fields."""
    yield f"## {tool.name}\n"
    yield f"{tool.title}. {_promise(tool.annotations)}\n"
    schema = tool.input_schema
    yield "| Argument | | Default | |"
    yield "|---|---|---|---|"
    for name, argument in schema["properties"].items():
        form = " or ".join(f"`{each}`" for each in argument.get("enum", [])) or FORMS[argument["type"]]
        needed = name in schema.get("required", [])
        default = "needed" if needed else f"`{json.dumps(argument['default'])}`" if "default" in argument else ""
        yield f"| `{name}` | {form} | {default} | {_cell(_meaning(tool.name, name, argument))} |"
    yield f"\n{NOTES[tool.name].strip()}\n"
    yield "Fields of the answer:\n"
    yield "```ts"
    yield from _shape(_answer(tool.output_schema))
    yield "```\n"


def _promise(hints: Any) -> str:
    if hints.read_only_hint:
        return "Changes nothing."
    kinds = ["only adds" if not hints.destructive_hint else "may replace or remove"]
    kinds += ["repeating it changes nothing more"] if hints.idempotent_hint else []
    return f"Writes: {', '.join(kinds)}. What it displaces can be brought back."


def _meaning(tool: str, name: str, argument: Mapping[str, Any]) -> str:
    """What the schema says of an argument, else what is said here. To have no words for one is an error."""
    said = argument.get("description") or MEANINGS[name]
    return said.format(most=MOST[tool]) if "{most}" in said else str(said)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("[[", "`[[").replace("]]", "]]`")


def _answer(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an answer alone: a failure is the same for all tools, and told in a place of its own."""
    ways = [way["required"] for way in schema.get("anyOf", [schema]) if way.get("required") != ["error"]]
    fields = {name: field for name, field in schema["properties"].items() if name != "error"}
    return {"type": "object", "properties": fields, "required": ways[0]}


def _shape(schema: Mapping[str, Any], name: str = "", indent: str = "") -> Iterator[str]:
    """A schema in the way TypeScript writes types: an object of many fields in several lines."""
    whole, item = _type(schema), schema.get("items", schema)
    if len(indent + name + whole) <= WIDTH or not item.get("properties"):
        yield f"{indent}{name}{whole}"
        return
    yield f"{indent}{name}{{"
    for key, value in item["properties"].items():
        yield from _shape(value, f"{_key(item, key)}: ", indent + "  ")
    yield f"{indent}}}" + ("[]" if "items" in schema else "")


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"])
    kinds = schema.get("type", "any")
    return " | ".join(_plain_type(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _plain_type(kind: str, schema: Mapping[str, Any]) -> str:
    if kind == "array":
        inside = _type(schema.get("items", {}))
        return f"({inside})[]" if " | " in inside and not inside.startswith("{") else f"{inside}[]"
    if kind == "object":
        fields = [f"{_key(schema, key)}: {_type(value)}" for key, value in schema.get("properties", {}).items()]
        if fields:
            return "{ " + ", ".join(fields) + " }"
        values = schema.get("additionalProperties")
        return f"{{ [name]: {_type(values)} }}" if isinstance(values, Mapping) and values else "object"
    return "number" if kind == "integer" else kind


def _key(schema: Mapping[str, Any], key: str) -> str:
    return key if key in schema.get("required", []) else f"{key}?"


async def _example(
    client: Any, fixed: Fixed, known: dict[str, str], tool: str, arguments: dict[str, Any], *, whole: bool = False
) -> list[str]:
    """A call and its answer: the text, and with `whole` the structured content as well."""
    sent = json.loads(json.dumps(arguments))
    for key, value in sent.items():
        if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
            sent[key] = known[value[1:-1]]
    result = await client.call_tool(tool, sent)
    data = result.structured_content
    if result.is_error is not whole:
        raise RuntimeError(f"{tool} answered {data}")
    if not whole and tool not in ("search_memories", "read_memory"):
        fixed.learn(data)
    if whole:
        error = data["error"]
        for found in (error["current_sha256"], error["ours_sha256"], error["merged"]["sha256"]):
            fixed.learn({"sha256": found})
    known.update({key: data[key] for key in ("sha256", "version") if data.get(key) and key in known})
    text = "\n".join(part.text for part in result.content)
    call = fixed(json.dumps(sent, ensure_ascii=False))
    lines = ["```text", *_folded(f"{tool} {call}"), "```", "", *_fenced("text", _wrapped(fixed(text))), ""]
    if whole:
        lines += ["```json", *fixed(json.dumps(data, indent=2, ensure_ascii=False)).split("\n"), "```", ""]
    return lines


def _folded(call: str) -> list[str]:
    return textwrap.wrap(call, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _wrapped(text: str) -> Iterator[str]:
    for line in text.rstrip("\n").split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        yield from textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _fenced(kind: str, lines: Iterator[str]) -> list[str]:
    inside = list(lines)
    fence = "```"
    while any(line.lstrip().startswith(fence) for line in inside):
        fence += "`"
    return [fence + kind, *inside, fence]


def _codes() -> Iterator[str]:
    from simplemem import errors

    real = {kind.code for kind in errors.SimplememError.__subclasses__()}
    if real != set(CODES):
        raise RuntimeError(f"codes of errors.py and of this page differ: {real ^ set(CODES)}")
    yield "| Code | What happened | What to do |"
    yield "|---|---|---|"
    for code, (what, then) in CODES.items():
        yield f"| `{code}` | {what} | {then} |"
    yield "\nFor example, when a person has just edited the note that an agent had read:\n"


def _prompts(prompts: list[Any]) -> Iterator[str]:
    yield "| Prompt | | Arguments |"
    yield "|---|---|---|"
    for prompt in prompts:
        arguments = [
            f"`{each.name}`{' (needed)' if each.required else ''}: {each.description}" for each in prompt.arguments
        ]
        yield f"| `{prompt.name}` | {prompt.description} | {'; '.join(arguments)} |"
    yield ""


def _profiles() -> Iterator[str]:
    from simplemem.faces.profiles import PROFILES, choose

    yield "| Profile | | Toolsets | Tools |"
    yield "|---|---|---|---|"
    for profile in PROFILES.values():
        names = ", ".join(f"`{tool.name}`" for tool in choose(profile))
        yield f"| `{profile.name}` | {profile.title} | {', '.join(profile.toolsets)} | {names} |"
    yield textwrap.dedent("""
        `simplemem` is the profile for agents that were set up for the original simplemem: its parameters, its updates
        that replace content and metadata whole, its Markdown answers, five hits, tags as a map, its limit on the length
        of a memory, and `.memories` below the working directory unless a vault is named. It reads the original's
        `config.toml` (`--config FILE` names another) and its environment names. A vault made by the original opens as
        it is.

        | Tool of `simplemem` | Arguments |
        |---|---|""").rstrip("\n")
    for tool in choose(PROFILES["simplemem"]):
        needed = tool.input.get("required", [])
        names = ", ".join(f"`{name}`{'' if name in needed else '?'}" for name in tool.input["properties"])
        yield f"| `{tool.name}` | {names} |"


def main() -> int:
    import anyio

    try:
        written = anyio.run(page)
    except BaseExceptionGroup as group:
        failure: BaseException = group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        raise failure from None
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == written
        if not current:
            print(f"{PAGE} is not what the server says now; run: python docs/generate_tools.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(written, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
