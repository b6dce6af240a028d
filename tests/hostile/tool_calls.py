"""How each tool is called so that it does its work, and the notes that these calls are about.

One argument after the other is then replaced by something hostile (test_tools_stay_inside.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

METADATA = {"title": "T", "description": "D", "tags": {"todo": True}}
USES = {"from": "Apollo", "to": "Saturn", "relationType": "uses"}
# Sample arguments by tool. Tools that need no argument are left out.
HARMLESS: dict[str, dict[str, Any]] = {
    "search_memories": {"query": "harbours"}, "build_context": {"query": "harbours", "url": "n"},
    "create_memory": {"name": "new", "content": "text", "metadata": METADATA, "overwrite": True},
    "update_memory": {"name": "n", "content": "text", "metadata": METADATA, "memory_id": "atom-one", "user_id": "alex"},
    "change_tag": {"name": "n", "tags": {"todo": None}}, "move_memory": {"name": "n", "new_name": "moved"},
    **{key: {"name": "n"} for key in ("read_memory", "get_backlinks", "undo_change")},
    "delete_memory": {"name": "n", "memory_id": "atom-one", "user_id": "alex"},
    # the graph: each profile has some of these arguments
    "create_entities": {"entities": [{"name": "Vega", "entityType": "component", "observations": ["Bright"]}]},
    "create_relations": {"relations": [{"from": "Saturn", "to": "Apollo", "relationType": "lifts"}]},
    "add_observations": {"observations": [{"entityName": "Apollo", "contents": ["Landed"]}]},
    "delete_entities": {"entityNames": ["Apollo"], "names": ["Apollo"]},
    "delete_observations": {"deletions": [{"entityName": "Apollo", "observations": ["Flew"]}]},
    "delete_relations": {"relations": [USES]}, "search_nodes": {"query": "flew"}, "open_nodes": {"names": ["Apollo"]},
    "traverse_graph": {"start": "Apollo"},
    "semantic_search": {"query": "flew"}, "get_relation": USES, "update_relation": {"relation": {**USES, "strength": 0.5}},
    "get_entity_embedding": {"entity_name": "Apollo"}, "get_entity_history": {"entityName": "Apollo"},
    "get_relation_history": USES, "get_graph_at_time": {"timestamp": 1_790_000_000_000},
    # what is learned
    "save_knowledge": {"type": "error", "content": "The pool is empty.", "confidence": 0.5, "tags": ["pool"]},
    "search_knowledge": {"query": "pool"}, "link_knowledge": {"sourceId": "id-one", "targetId": "id-two"},
    "update_knowledge": {"id": "id-one", "content": "The pool was empty."}, "delete_knowledge": {"id": "id-one"},
    "auto_resolve_contradictions": {"apply": True},
    "review_contradictions": {"verdicts": [{"one": "id-one", "other": "id-two", "verdict": "compatible"}]},
    "verify_knowledge": {"id": "id-one"}, "trace_knowledge": {"id": "id-one"}, "search_all_knowledge": {"query": "pool"},
    # what was said
    "store_conversation": {"message": "My pin is 4471. I'm vegan.", "context": "c", "response": "r", "topic": "Tides",
                           "facts": [{"key": "boat", "value": "Plover"}], "timestamp": "2026-01-01", "session_id": "s"},
    "retrieve_memory": {"query": "tides"}, "talk_context": {"message": "tides"},
    "get_topic_history": {"block_id": "block_20260101_000000"}, "garden_topics": {"block_id": "all"},
    # what is remembered
    "add_memory": {"content": "I like gentian tea.", "user_id": "alex", "metadata": {"from": "a letter"}},
    "search_memory": {"query": "tea", "user_id": "alex"}, "superrag_search": {"query": "tea", "container_tag": "alex"},
    "ingest_text": {"content": "The crane is greased.", "container_tag": "alex", "title": "Crane"},
    "ingest_url": {"url": "said when there is a server", "container_tag": "alex", "title": "Page"},
    "get_user_profile": {"container_tag": "alex"}, "list_memories": {"container_tag": "alex"},
    "query_knowledge_base": {"query": "tea"}, "update_knowledge_base": {"file_path": "docs/tea.md", "content": "Tea.\n"},
    # what clients have built in
    "memory": {"command": "create", "path": "/memories/new.md", "file_text": "text", "view_range": [1, 2],
               "old_str": "a", "new_str": "b", "insert_line": 0, "insert_text": "c", "old_path": "/memories/a.md",
               "new_path": "/memories/b.md"},
    "search": {"query": "harbours"}, "fetch": {"id": "n"},
    # notes as basic-memory has them
    "write_note": {"title": "new", "content": "- [fact] text #tag", "directory": "/", "overwrite": True, "tags": ["todo"]},
    "edit_note": {"identifier": "n", "operation": "append", "content": "text"}, "search_notes": {"query": "harbours"},
    **{key: {"identifier": "n"} for key in ("read_note", "delete_note")},
    "move_note": {"identifier": "n", "destination_path": "moved.md"},
}  # fmt: skip
_KNOWN = "---\ntype: knowledge\nid: {}\nknowledge_type: solution\nconfidence: 0.8\nverified: false\n---\n\n{}\n"
NOTES = {
    "graph/Apollo.md": "---\ntype: entity\nentity_type: component\n---\n\n## Observations\n- Flew\n\n"
    "## Relations\n- uses [[Saturn]]\n",
    "graph/Saturn.md": "---\ntype: entity\nentity_type: component\n---\n\n## Observations\n- Lifts\n",
    "knowledge/solution/one.md": _KNOWN.format("id-one", "The default timeout is 30 seconds."),
    "topics/2026/01/2026-01-01 Sea.md": "---\ntype: topic\naliases: [block_20260101_000000]\ntags: [status/active]\n---\n\n"
    "> [!quote] You, 00:00\n> The tides of Brest.\n\n^turn-20260101-000000-aaaaaa\n",
    "facts/pin.md": "---\ntype: fact\nkey: pin\nvalue: '1'\n---\n\n> My pin is 1.\n",
    "profiles/default.md": "---\ntype: profile\nname: Ada\n---\n\n## Constraints\n- vegan\n",
    "atoms/alex/Tea.md": "---\ntype: atom\nid: atom-one\nscope: alex\n---\n\nI like green tea.\n",
    "knowledge/solution/two.md": _KNOWN.format("id-two", "The default timeout is 50 seconds."),
}


def harmless(tool: Any) -> dict[str, Any]:
    """Return sample arguments of a tool: those in HARMLESS that it has."""
    properties = tool.listing()["inputSchema"]["properties"]
    arguments = HARMLESS.get(tool.name, {})
    return {name: value for name, value in arguments.items() if name in properties}


def put_back(vault: Path) -> None:
    """Restore the notes that the calls use, if the last call deleted or changed them."""
    (vault / "memories" / "new.md").unlink(missing_ok=True)
    (vault / "new.md").unlink(missing_ok=True)  # profiles write its tags differently
    (vault / "moved.md").unlink(missing_ok=True)
    if not (vault / "n.md").is_file():
        (vault / "n.md").write_text(
            "---\ntags: [todo]\n---\nA note about [[notes/other]] harbours.\n"
        )
    for path, text in NOTES.items():
        if not (vault / path).is_file() or (vault / path).read_text() != text:
            (vault / path).parent.mkdir(parents=True, exist_ok=True)
            (vault / path).write_text(text)
