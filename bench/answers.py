"""How large answers are as text and as data, since most clients show a model one of the two: `python bench/answers.py
[VAULT]`. Without a vault the example is asked. Each line is one call: bytes of its text, bytes of its structured content
as it goes over the wire, and how they compare."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic_core import to_json

from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.store import EnhancedStore, open_store
from simplemem.tools.tool import Data, Reply

_TOOLS = {tool.name: tool for tool in choose_tools(built_in_profiles()["default"])}
_LEARNED = {tool.name: tool for tool in choose_tools(built_in_profiles()["self-improving"])}
_ENTRIES = 40


def sizes(reply: Reply[object]) -> tuple[int, int]:
    """Bytes of an answer as text, and of its data."""
    return len(reply.text.encode()), len(to_json(reply.data() or {}))


def call(store: EnhancedStore, name: str, /, **arguments: object) -> Reply[object]:
    """An answer as a client gets it."""
    tool = (_TOOLS | _LEARNED)[name]
    return tool(store, {"who": "bench", "tool": name}, tool.manner.read(tool, arguments))


def calls(store: EnhancedStore) -> list[tuple[str, Data]]:
    """What an agent asks of a vault: its longest note, one section of that, the note most lead to, and the rest."""
    names = [each.name for each in store.list(sort="name", limit=200).items]
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
        *(
            (name, {})
            for name in (
                "suggest_tags",
                "generate_insights",
                "detect_antipatterns",
                "cluster_knowledge",
            )
        ),
        ("get_superseded_history", {}),
        ("export_graph", {"format": "json"}),
    ]


def _entry(number: int) -> Data:
    kind = ("error", "solution", "insight")[number % 3]
    content = f"The cache of service {number} was slow until its limit was {number} MB, so set it in the settings."
    return {"type": kind, "content": content, "confidence": 0.4 + number % 6 / 10, "tags": []}


def main() -> None:
    source = Path(
        sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "vault-example"
    )
    print(f"{'bytes of':42}{'text':>9}{'data':>9}{'data/text':>11}")
    with tempfile.TemporaryDirectory(prefix="simplemem-answers-") as made:
        vault = Path(made) / "vault"
        shutil.copytree(source, vault, ignore=shutil.ignore_patterns(".simplemem", ".git"))
        with open_store(vault) as store:
            store.sync()
            for name, arguments in calls(store):
                text, data = sizes(call(store, name, **arguments))
                if name != "save_knowledge" or arguments == _entry(0):
                    said = ", ".join(
                        f"{key}={value}"
                        for key, value in arguments.items()
                        if key not in ("name", "content")
                    )
                    print(f"{f'{name} {said}'[:40]:42}{text:9,}{data:9,}{data / text:11.2f}")


if __name__ == "__main__":
    main()
