"""basic-memory as it is published beside `--profile basic-memory`: the arguments of each tool, and a sequence of calls.

    python -m venv theirs && theirs/bin/pip install basic-memory          (it wants Python 3.12)
    python bench/basic_memory.py --theirs theirs/bin/basic-memory

Both serve a new folder. Of tools it compares names, arguments, types, defaults and what is needed; of answers whether
they failed, the shape of the data, and in texts the first sentence and the names of fields. Exits with 1 when something
differs that a prompt may depend on; what differs on purpose is printed with its reason. Calls and reasons:
basic_memory.toml.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, serve

VOLATILE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{8,64}\b|\d+")


def argument(schema: dict[str, Any], name: str) -> tuple[Any, ...]:
    """What a prompt may depend on of an argument: types, words, default, whether it is needed."""
    about = schema["properties"][name]
    forms = about.get("anyOf", [about])
    words = sorted(word for each in forms for word in each.get("enum", ()))
    return (
        sorted(each["type"] for each in forms),
        words,
        about.get("default"),
        name in schema.get("required", ()),
    )


def unlike(one: Any, other: Any, at: str = "") -> Iterator[str]:
    """Where keys of data, or the kinds of values, differ. Null goes with anything, a list by its first item."""
    if isinstance(one, dict) and isinstance(other, dict):
        yield from (
            f"{at}.{key} is only {'theirs' if key in one else 'ours'}"
            for key in sorted(one.keys() ^ other.keys())
        )
        for key in one.keys() & other.keys() - {"frontmatter"}:
            yield from unlike(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        yield from unlike(one[0], other[0], f"{at}[]") if one and other else ()
    elif (
        None not in (one, other)
        and type(one) is not type(other)
        and not {type(one), type(other)} <= {int, float}
    ):
        yield f"{at}: theirs is {type(one).__name__}, ours {type(other).__name__}"


def form(text: str) -> tuple[str, list[str]]:
    """The first sentence of a text, and its fields and headings, without what differs by chance."""
    lines = [VOLATILE.sub("*", line) for line in text.strip().split("\n")]
    named = (re.match(r"#+ [^:]*+$|(?:- )?\**[A-Za-z_ ]++\**:(?= |$)", line) for line in lines)
    return re.split(r"(?<=\.) ", lines[0])[0], sorted({each[0] for each in named if each})


def _data(text: str) -> Any:
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except ValueError:
        return None


def answers(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    """How two answers to one call differ."""
    if bool(theirs.get("isError")) != bool(ours.get("isError")):
        yield f"theirs {'failed' if theirs.get('isError') else 'did not fail'}"
    texts = ["".join(part["text"] for part in each["content"]) for each in (theirs, ours)]
    data = [_data(text) for text in texts]
    if None not in data:
        yield from unlike(*data)
        return
    (first, fields), (head, names) = map(form, texts)
    if first != head:
        yield f"begins: theirs {first[:90]!r}, ours {head[:90]!r}"
    elif missing := [each for each in fields if each not in names]:
        yield f"lacks {missing}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--theirs", required=True, help="the command basic-memory")
    asked, table = (
        parser.parse_args(),
        tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")),
    )
    found = list[str]()
    with tempfile.TemporaryDirectory() as room:
        home, folders = Path(room, "home"), [Path(room, each) for each in ("theirs", "ours")]
        for folder in (home, *folders):
            folder.mkdir()
        env = {
            "HOME": str(home),
            "BASIC_MEMORY_HOME": str(folders[0]),
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
        }
        commands = ([asked.theirs, "mcp"], serve(folders[1], "--profile", "basic-memory"))
        with (
            Conversation(commands[0], env=env, quiet=True) as theirs,
            Conversation(commands[1], quiet=True) as ours,
        ):
            lists = [
                {each["name"]: each for each in server.ask("tools/list", {})["tools"]}
                for server in (theirs, ours)
            ]
            for name in lists[1]:
                schemas = [each[name]["inputSchema"] for each in lists]
                found += unlike(*(dict.fromkeys(each["properties"]) for each in schemas), name)
                for key in schemas[0]["properties"].keys() & schemas[1]["properties"].keys():
                    one, other = (argument(each, key) for each in schemas)
                    found += [f"{name}({key}): theirs {one}, ours {other}"] if one != other else []
            for call in table["calls"]:
                name, _, sent = call.partition(" ")
                both = [server.use(name, **json.loads(sent)) for server in (theirs, ours)]
                found += [f"{call}\n    {each}" for each in answers(*both)]
    bad = 0
    for each in found:
        why = next((known["why"] for known in table["known"] if re.search(known["what"], each)), "")
        bad += not why
        print(f"{'known' if why else 'DIFFERS'}: {each}" + (f"\n    ({why})" if why else ""))
    print(
        f"{len(lists[1])} tools, {len(table['calls'])} calls: {bad} differences, {len(found) - bad} on purpose"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
