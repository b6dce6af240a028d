"""Compare the published basic-memory with our profile: arguments, and a sequence of calls.

    python3.12 -m venv theirs && theirs/bin/pip install basic-memory
    python bench/basic_memory.py --theirs theirs/bin/basic-memory

Both serve a new folder. Compared are

- of tools: names, arguments, types, defaults, and which arguments are required
- of answers: whether they failed, the structure of JSON, and the first sentence and the field names
  of texts

Exits with 1 if a difference remains that a prompt may depend on. Intended differences are printed
with their reason. The calls and the reasons are in basic_memory.toml. basic-memory needs Python
3.12.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, serve

VOLATILE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{8,64}\b|\d+")
"""Ids, hashes and numbers: they differ between two runs of one server."""

FIELD_NAME = re.compile(r"#+ [^:]*+$|(?:- )?\**[A-Za-z_ ]++\**:(?= |$)")
"""A heading, or the name of a field at the beginning of a line."""

NOTE_CONTENT = {"frontmatter"}
"""Keys whose value comes from the note: its keys may differ."""


@dataclass(frozen=True)
class Servers:
    """basic-memory and simplemem, each serving a folder of its own."""

    peer: Conversation
    own: Conversation

    def tools(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the tool lists of both, by tool name."""
        return _tools_by_name(self.peer), _tools_by_name(self.own)


def main() -> int:
    """Compare the two servers. Return the exit code: 1 if an unintended difference was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--theirs", required=True, help="the command basic-memory")
    options = parser.parse_args()
    script = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

    with ExitStack() as stack:
        servers = _start_both(options.theirs, stack)
        differences = [*compare_tools(servers), *compare_calls(servers, script["calls"])]
        tool_count = len(servers.tools()[1])

    unintended = _print_differences(differences, script["known"])
    intended = len(differences) - unintended
    print(
        f"{tool_count} tools, {len(script['calls'])} calls: "
        f"{unintended} differences, {intended} on purpose"
    )
    return 1 if unintended else 0


def _start_both(their_command: str, stack: ExitStack) -> Servers:
    """Start both servers in new folders, which `stack` removes after the servers have ended."""
    root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    home = root / "home"
    their_folder = root / "theirs"
    our_folder = root / "ours"
    for folder in (home, their_folder, our_folder):
        folder.mkdir()

    their_environment = {
        "HOME": str(home),
        "BASIC_MEMORY_HOME": str(their_folder),
        "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
    }
    peer = Conversation([their_command, "mcp"], env=their_environment, quiet=True)
    stack.enter_context(peer)
    own = Conversation(serve(our_folder, "--profile", "basic-memory"), quiet=True)
    stack.enter_context(own)
    return Servers(peer, own)


def _tools_by_name(server: Conversation) -> dict[str, Any]:
    return {tool["name"]: tool for tool in server.ask("tools/list", {})["tools"]}


def compare_tools(servers: Servers) -> Iterator[str]:
    """Yield a line for each difference between the arguments of the tools that simplemem has."""
    their_tools, our_tools = servers.tools()
    for name in our_tools:
        their_schema = their_tools[name]["inputSchema"]
        our_schema = our_tools[name]["inputSchema"]
        their_names = dict.fromkeys(their_schema["properties"])
        our_names = dict.fromkeys(our_schema["properties"])

        yield from compare_values(their_names, our_names, name)
        for argument in their_names.keys() & our_names.keys():
            their_argument = describe_argument(their_schema, argument)
            our_argument = describe_argument(our_schema, argument)
            if their_argument != our_argument:
                yield f"{name}({argument}): theirs {their_argument}, ours {our_argument}"


def describe_argument(schema: dict[str, Any], name: str) -> tuple[Any, ...]:
    """Return what a prompt may depend on: types, permitted words, default, if it is required."""
    argument = schema["properties"][name]
    alternatives = argument.get("anyOf", [argument])
    words: list[str] = []
    for alternative in alternatives:
        words += alternative.get("enum", ())
    return (
        sorted(alternative["type"] for alternative in alternatives),
        sorted(words),
        argument.get("default"),
        name in schema.get("required", ()),
    )


def compare_calls(servers: Servers, calls: list[str]) -> Iterator[str]:
    """Make each call to both servers, in order, and yield each difference between their answers.

    A call is the name of a tool, a space, and its arguments as JSON.
    """
    for call in calls:
        tool, _, arguments_json = call.partition(" ")
        arguments = json.loads(arguments_json)
        their_answer = servers.peer.use(tool, **arguments)
        our_answer = servers.own.use(tool, **arguments)
        for difference in compare_answers(their_answer, our_answer):
            yield f"{call}\n    {difference}"


def compare_answers(peer: dict[str, Any], own: dict[str, Any]) -> Iterator[str]:
    """Yield how two results of one call differ: as JSON if both are, otherwise as texts."""
    they_failed = bool(peer.get("isError"))
    we_failed = bool(own.get("isError"))
    if they_failed != we_failed:
        yield f"theirs {'failed' if they_failed else 'did not fail'}"

    their_text = _text_of(peer)
    our_text = _text_of(own)
    their_data = _parse_json(their_text)
    our_data = _parse_json(our_text)
    if their_data is not None and our_data is not None:
        yield from compare_values(their_data, our_data)
    else:
        yield from compare_texts(their_text, our_text)


def compare_values(peer: Any, own: Any, path: str = "") -> Iterator[str]:
    """Yield where the keys of two values, or the types of their values, differ.

    Null equals anything. Of lists the first items are compared.
    """
    if isinstance(peer, dict) and isinstance(own, dict):
        yield from _compare_objects(peer, own, path)
    elif isinstance(peer, list) and isinstance(own, list):
        if peer and own:
            yield from compare_values(peer[0], own[0], f"{path}[]")
    elif not _have_same_type(peer, own):
        yield f"{path}: theirs is {type(peer).__name__}, ours {type(own).__name__}"


def _compare_objects(peer: dict[str, Any], own: dict[str, Any], path: str) -> Iterator[str]:
    for key in sorted(peer.keys() ^ own.keys()):
        owner = "theirs" if key in peer else "ours"
        yield f"{path}.{key} is only {owner}"
    for key in (peer.keys() & own.keys()) - NOTE_CONTENT:
        yield from compare_values(peer[key], own[key], f"{path}.{key}")


def _have_same_type(peer: Any, own: Any) -> bool:
    if peer is None or own is None:
        return True
    types = {type(peer), type(own)}
    return len(types) == 1 or types == {int, float}


def compare_texts(peer: str, own: str) -> Iterator[str]:
    """Yield how the first sentences differ, or else which fields of peer are missing in own."""
    their_sentence = _first_sentence(peer)
    our_sentence = _first_sentence(own)
    if their_sentence != our_sentence:
        yield f"begins: theirs {their_sentence[:90]!r}, ours {our_sentence[:90]!r}"
        return

    missing = sorted(_field_names(peer) - _field_names(own))
    if missing:
        yield f"lacks {missing}"


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.) ", _stable_lines(text)[0])[0]


def _field_names(text: str) -> set[str]:
    """Return the headings and the names of fields in a text."""
    matches = (FIELD_NAME.match(line) for line in _stable_lines(text))
    return {match[0] for match in matches if match and match[0]}


def _stable_lines(text: str) -> list[str]:
    """Return the lines of a text with `*` for what differs between two runs."""
    return [VOLATILE.sub("*", line) for line in text.strip().split("\n")]


def _text_of(result: dict[str, Any]) -> str:
    return "".join(part["text"] for part in result["content"])


def _parse_json(text: str) -> Any:
    """Return the value of a text that is a JSON object or list, and None for every other text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _print_differences(differences: list[str], intended: list[dict[str, str]]) -> int:
    """Print each difference with its reason, if it is intended. Return how many are not."""
    unintended = 0
    for difference in differences:
        reason = _reason_for(difference, intended)
        if reason:
            print(f"known: {difference}\n    ({reason})")
        else:
            print(f"DIFFERS: {difference}")
            unintended += 1
    return unintended


def _reason_for(difference: str, intended: list[dict[str, str]]) -> str:
    """Return the reason of the first pattern that occurs in a difference, or an empty text."""
    for entry in intended:
        if re.search(entry["what"], difference):
            return entry["why"]
    return ""


if __name__ == "__main__":
    sys.exit(main())
