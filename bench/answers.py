"""How large answers are as text and as data, because most clients show a model only one of the two.

    python bench/answers.py [VAULT]     without a vault, of the example vault

Each line is one call: the bytes of its text, the bytes of its structured content as JSON, and their
ratio.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic_core import to_json

from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.store import EnhancedStore, open_store
from simplemem.tools.tool import Data, Reply, Tool

EXAMPLE: Final = Path(__file__).parent.parent / "vault-example"
_PROFILES: Final = ("self-improving", "default")  # the default tools win where names are equal
_ENTRIES: Final = 40
_NOT_PRINTED: Final = ("name", "content")


def main() -> None:
    """Copy a vault, make all calls on it, and print a line for each."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE
    print(f"{'bytes of':42}{'text':>9}{'data':>9}{'data/text':>11}")
    with tempfile.TemporaryDirectory(prefix="simplemem-answers-") as folder:
        vault = Path(folder) / "vault"
        shutil.copytree(source, vault, ignore=shutil.ignore_patterns(".simplemem", ".git"))
        with open_store(vault) as store:
            store.sync()
            for name, arguments in calls(store):
                reply = call(store, name, **arguments)
                # One of the many equal writes is enough.
                if name != "save_knowledge" or arguments == _entry(0):
                    print_row(name, arguments, reply)


def print_row(name: str, arguments: Data, reply: Reply[object]) -> None:
    """Print the sizes of an answer."""
    texts = [f"{key}={value}" for key, value in arguments.items() if key not in _NOT_PRINTED]
    title = f"{name} {', '.join(texts)}"[:40]
    text_size, data_size = sizes(reply)
    print(f"{title:42}{text_size:9,}{data_size:9,}{data_size / text_size:11.2f}")


def sizes(reply: Reply[object]) -> tuple[int, int]:
    """Return the bytes of an answer as text, and as data."""
    return len(reply.text.encode()), len(to_json(reply.data() or {}))


def call(store: EnhancedStore, name: str, /, **arguments: object) -> Reply[object]:
    """Return the answer of a tool, with its arguments read as a client sends them."""
    tool = _tools_by_name()[name]
    return tool(store, {"who": "bench", "tool": name}, tool.adapter.read(tool, arguments))


@cache
def _tools_by_name() -> dict[str, Tool]:
    """Return the tools of the profiles. Of several with one name, that of the last one counts."""
    tools = {}
    for profile in _PROFILES:
        tools |= {tool.name: tool for tool in choose_tools(built_in_profiles()[profile])}
    return tools


def calls(store: EnhancedStore) -> list[tuple[str, Data]]:
    """Return the tools that an agent calls, with their arguments.

    They concern the longest note and its last section, the note with most backlinks, and new notes.
    """
    names = [item.name for item in store.list(sort="name", limit=200).items]
    notes = [store.read(name) for name in names]
    longest = max(notes, key=lambda note: len(note.headings) * 1000 + len(note.content))
    hub = max(notes, key=lambda note: len(note.backlinks))
    topic = hub.title
    return [
        ("list_memories", {}),
        ("list_memories", {"limit": 200}),
        ("search_memories", {"query": topic}),
        ("search_memories", {"query": topic, "limit": 50}),
        ("search_memories", {"query": topic, "explain": True}),
        ("read_memory", {"name": hub.name}),
        ("read_memory", {"name": longest.name}),
        ("read_memory", {"name": longest.name, "section": longest.headings[-1][1]}),
        ("get_backlinks", {"name": hub.name, "limit": 50}),
        ("build_context", {"query": topic}),
        ("update_memory", {"name": hub.name, "append": "One line more."}),
        ("change_tag", {"name": hub.name, "tags": {"todo": True}}),
        ("move_memory", {"name": hub.name, "new_name": "moved"}),
        ("memory_history", {}),
        ("memory_history", {"diff": True}),
        ("undo_change", {"name": "moved"}),
        ("delete_memory", {"name": longest.name}),
        ("create_memory", {"name": "people/Ada Lovelace", "content": "She flies kites."}),
        *(("save_knowledge", _entry(number)) for number in range(_ENTRIES)),
        ("search_knowledge", {"query": "which cache was slow"}),
        ("suggest_tags", {}),
        ("generate_insights", {}),
        ("detect_antipatterns", {}),
        ("cluster_knowledge", {}),
        ("get_superseded_history", {}),
        ("export_graph", {"format": "json"}),
    ]


def _entry(number: int) -> Data:
    """Return the arguments of `save_knowledge` for one of many similar entries."""
    return {
        "type": ("error", "solution", "insight")[number % 3],
        "content": (
            f"The cache of service {number} was slow until its limit was {number} MB, "
            "so set it in the settings."
        ),
        "confidence": 0.4 + number % 6 / 10,
        "tags": [],
    }


if __name__ == "__main__":
    main()
