"""Chats of ChatGPT and Claude are imported as topics; a second import adds only new turns."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simplemem import open_store
from simplemem.errors import NotFound
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.service import conversation_service
from simplemem.importers import SOURCES
from simplemem.importers.plan import Plan, apply_plan, make_plan
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EnhancedStore]:
    with open_store(tmp_path / "vault") as opened:
        yield opened


def node(
    id_: str, parent: str | None, role: str, content: Any, at: float | None = None, **more: Any
) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    author = {"role": role, "name": None, "metadata": {}}
    message = {
        "id": id_,
        "author": author,
        "create_time": at,
        "content": content,
        "recipient": "all",
        "metadata": {},
    }
    return {"id": id_, "message": {**message, **more}, "parent": parent, "children": []}


def chatgpt(*more: dict[str, Any], title: str | None = "Parachute of the box") -> dict[str, Any]:
    """Return a chat in the form of 2026: an empty root, hidden messages, an old branch, tools."""
    hidden = {"is_visually_hidden_from_conversation": True}
    editable = {
        "content_type": "user_editable_context",
        "user_profile": "I am Priya",
        "user_instructions": "",
    }
    picture = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-1",
        "size_bytes": 3,
    }
    question = {
        "content_type": "multimodal_text",
        "parts": [picture, "How large must it be?\n# now"],
    }
    cited = "Four \ue200cite\ue202turn0search0\ue201metres."
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["s"]},
        node("s", "root", "system", "", metadata=hidden),
        node("e", "s", "user", editable, metadata=hidden),
        node(
            "q1",
            "e",
            "user",
            question,
            1_767_434_645.5,
            metadata={"attachments": [{"name": "plan.pdf"}]},
        ),
        node("left", "q1", "assistant", "An answer that was made again", 1_767_434_650.0),
        node("t", "q1", "assistant", {"content_type": "thoughts", "thoughts": []}, None),
        node(
            "c",
            "t",
            "assistant",
            {"content_type": "code", "text": "search()"},
            None,
            recipient="web",
        ),
        node("o", "c", "tool", {"content_type": "execution_output", "text": "TOOL OUTPUT"}, None),
        node("a1", "o", "assistant", cited, None),
        node("q2", "a1", "user", "And of what cloth?", 1_767_607_445.0),
        node("a2", "q2", "assistant", "Ripstop.", 1_767_607_450.0),
        *more,
    ]
    times = {"create_time": 1_767_434_600.0, "update_time": 1_767_607_450.0}
    mapping = {message["id"]: message for message in nodes}
    return {
        "title": title,
        **times,
        "mapping": mapping,
        "current_node": nodes[-1]["id"],
        "conversation_id": "c-1",
    }


def claude(*more: dict[str, Any]) -> dict[str, Any]:
    def message(
        uuid: str, sender: str, at: str, *content: dict[str, Any], **rest: Any
    ) -> dict[str, Any]:
        text = "".join(part.get("text", "") for part in content)
        return {
            "uuid": uuid,
            "text": text,
            "content": content,
            "sender": sender,
            "created_at": at,
            **rest,
        }

    note = {
        "file_name": "notes.txt",
        "file_type": "txt",
        "file_size": 9,
        "extracted_content": "580 g",
    }
    artifact = {"command": "create", "title": "Table", "content": "| a |", "id": "t"}
    return {
        "uuid": "k-1",
        "name": "",
        "created_at": "2026-02-03T04:05:06.123456Z",
        "updated_at": "2026-02-03T04:06:00Z",
        "account": {"uuid": "acct"},
        "chat_messages": [
            message(
                "m1", "human", "2026-02-03T04:05:06.123456Z", {"type": "text", "text": "What weighs the box?"},
                attachments=[note], files=[{"file_name": "box.png"}],
            ),
            message(
                "m2", "assistant", "2026-02-03T04:05:16Z", {"type": "thinking", "thinking": "hidden thought"},
                {"type": "text", "text": "580 g."}, {"type": "tool_use", "name": "artifacts", "input": artifact},
                {"type": "tool_result", "content": [{"type": "text", "text": "OK"}]},
            ),
            *more,
        ],
    }  # fmt: skip


def zipped(file: Path, **parts: Any) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name.replace("__", "/") + ".json", json.dumps(data))
        archive.writestr("chat.html", "<html>")
    return file


def plan_import(store: EnhancedStore, file: Path, kind: str = "chatgpt") -> Plan:
    return make_plan(store, kind, str(file), "", SOURCES[kind].read(file))


def files(vault: Path) -> dict[str, bytes]:
    paths = [path for path in vault.rglob("*") if path.is_file()]
    own_paths = [path for path in paths if ".simplemem" not in path.parts]
    return {path.relative_to(vault).as_posix(): path.read_bytes() for path in own_paths}


def test_a_chat_becomes_a_closed_topic_with_its_dates(store: EnhancedStore, tmp_path: Path) -> None:
    apply_plan(
        store,
        plan_import(
            store,
            zipped(tmp_path / "e.zip", **{"conversations-000": [chatgpt()], "user": {"id": "u"}}),
        ),
    )
    (block,) = conversation_service(store).topics(closed=True)
    assert conversation_service(store).topics() == []
    assert (block.label, block.status, block.created.isoformat()) == (
        "Parachute of the box", "closed", "2026-01-03T10:04:05+00:00",
    )  # fmt: skip
    first, second = block.turns
    assert (first.message, first.answer) == ("How large must it be?\n# now", "Four metres.")
    assert first.context == "Attached: plan.pdf"
    assert (second.message, second.answer, second.at.isoformat()) == (
        "And of what cloth?", "Ripstop.", "2026-01-05T10:04:05+00:00",
    )  # fmt: skip
    text = block.text
    assert all(
        hidden not in text
        for hidden in ("made again", "TOOL OUTPUT", "search()", "Priya", "\ue200")
    )
    assert store.search("ripstop cloth").hits[0].name.startswith("topics/2026/01/")
    assert store.list().items[0].modified.startswith("2026-01-05")


def test_a_chat_of_claude_its_memory_and_its_projects(store: EnhancedStore, tmp_path: Path) -> None:
    memory = [
        {
            "conversations_memory": "Likes kites.",
            "project_memories": {"p": "Flies."},
            "account_uuid": "acct",
        }
    ]
    doc = {
        "uuid": "d",
        "filename": "a/b.md",
        "content": "A document.",
        "created_at": "2026-01-01T00:00:00Z",
    }
    project = {
        "uuid": "p",
        "name": "Kites",
        "prompt_template": "Be short.",
        "docs": [doc],
        "description": "",
    }
    parts = {
        "conversations": [claude()],
        "memories": memory,
        "projects__p": project,
        "users": [{"uuid": "acct"}],
    }
    plan = plan_import(store, zipped(tmp_path / "e.zip", **parts), "claude")
    assert (plan.new, plan.skipped) == (5, ())
    apply_plan(store, plan)
    (block,) = conversation_service(store).topics(closed=True)
    assert block.label == "Weighs the box"
    assert (block.turns[0].answer, block.turns[0].context) == (
        "580 g.\n\nTable:\n\n| a |",
        "notes.txt\n580 g\n\nbox.png",
    )
    names = {note.name for note in store.list().items} - {block.path[:-3]}
    assert names == {
        "claude/Memory",
        "claude/Memory of p",
        "claude/Kites/Kites",
        "claude/Kites/a-b",
    }


def test_a_second_run_adds_only_new_turns_and_one_undo_takes_a_run_back(
    store: EnhancedStore, tmp_path: Path
) -> None:
    first = apply_plan(
        store, plan_import(store, zipped(tmp_path / "a.zip", conversations=[chatgpt()]))
    )
    store.undo(first.written[0].version)
    assert files(store.root) == {}
    apply_plan(store, plan_import(store, tmp_path / "a.zip"))
    assert plan_import(store, tmp_path / "a.zip").drafts == ()
    (name,) = [note.name for note in store.list().items]
    store.move(name, "kites/Parachute")
    store.update("kites/Parachute", edits=[{"old": "Four metres.", "new": "Four metres, I think."}])
    was = files(store.root)
    grown = chatgpt(
        node("q3", "a2", "user", "Where from?", 1_767_693_845.0),
        node("a3", "q3", "assistant", "A sailmaker."),
    )
    plan = plan_import(store, zipped(tmp_path / "b.zip", conversations=[grown]))
    assert (plan.new, plan.changed) == (0, 1)
    second = apply_plan(store, plan)
    (block,) = conversation_service(store).topics(closed=True)
    assert [turn.message for turn in block.turns][1:] == ["And of what cloth?", "Where from?"]
    assert (block.path, block.turns[0].answer) == ("kites/Parachute.md", "Four metres, I think.")
    assert (
        plan_import(store, tmp_path / "b.zip").drafts
        == plan_import(store, tmp_path / "a.zip").drafts
        == ()
    )
    store.undo(second.written[0].version)
    assert files(store.root) == was


def test_a_turn_that_was_deleted_is_not_imported_again(
    store: EnhancedStore, tmp_path: Path
) -> None:
    apply_plan(store, plan_import(store, zipped(tmp_path / "a.zip", conversations=[chatgpt()])))
    (block,) = conversation_service(store).topics(closed=True)
    (store.root / block.path).write_text(block.text[: block.turns[1].start].rstrip() + "\n")
    assert plan_import(store, tmp_path / "a.zip").drafts == ()


def test_an_import_does_not_change_the_active_topic(store: EnhancedStore, tmp_path: Path) -> None:
    conversation = conversation_service(store)
    conversation.record(new_exchange("My rain gauge leaks at the seam.", "Solder it."))
    apply_plan(store, plan_import(store, zipped(tmp_path / "a.zip", conversations=[chatgpt()])))
    stored = conversation.record(new_exchange("And where do I get solder?", "At a shop."))
    assert stored["routing_scenario"] == "topic_continuation"
    assert conversation.profile().name == ""
    back = conversation.record(
        new_exchange("Back to the parachute of the box: how heavy is its cloth?", "60 g.")
    )
    assert (back["routing_scenario"], back["topic"]) == ("topic_resumption", "Parachute of the box")


def test_a_very_long_chat_is_several_notes(store: EnhancedStore, tmp_path: Path) -> None:
    nodes, parent = [], "a2"
    for number in range(700):
        nodes.append(
            node(f"n{number}", parent, "user", f"Question {number}?", 1_767_700_000.0 + number)
        )
        parent = f"n{number}"
    export = zipped(tmp_path / "a.zip", conversations=[chatgpt(*nodes)])
    assert plan_import(store, export).new == 3
    apply_plan(store, plan_import(store, export))
    assert sum(len(block.turns) for block in conversation_service(store).topics(closed=True)) == 702
    assert plan_import(store, export).drafts == ()


def test_a_broken_record_is_skipped_with_a_reason_and_the_rest_is_imported(
    store: EnhancedStore, tmp_path: Path
) -> None:
    odd = [
        {"mapping": {}, "id": "x"},
        {"mapping": {"a": 1}, "current_node": "a", "id": "y"},
        7,
        {"title": "?"},
    ]
    odd += [{"uuid": "z", "chat_messages": [{"sender": 3}]}, chatgpt() | {"create_time": "soon"}]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(odd)[:-1] + ', {"mapping": ')
    plan = plan_import(store, file)
    assert plan.new == 1
    assert [part.origin for part in plan.skipped] == [
        *(f"conversations.json {n}" for n in range(1, 6)),
        "conversations.json",
    ]


def test_a_folder_that_is_no_export_is_refused(store: EnhancedStore, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "notes.json").write_text("[]")
    with pytest.raises(NotFound):
        plan_import(store, tmp_path / "old")


def test_a_chat_with_a_credential_becomes_private(store: EnhancedStore, tmp_path: Path) -> None:
    question = node("q3", "a2", "user", "password: Zx81-Kq9-sinclair", 1_767_693_845.0)
    apply_plan(
        store, plan_import(store, zipped(tmp_path / "a.zip", conversations=[chatgpt(question)]))
    )
    (block,) = conversation_service(store).topics(closed=True)
    assert "private: true" in block.text


def test_if_secrets_are_refused_a_chat_with_one_is_skipped_and_the_rest_is_imported(
    tmp_path: Path,
) -> None:
    question = node("q3", "a2", "user", "password: Zx81-Kq9-sinclair", 1_767_693_845.0)
    export = zipped(tmp_path / "a.zip", conversations=[chatgpt(question), claude()])
    settings = Settings.model_validate({"write": {"secrets": "refuse"}})
    with EnhancedStore(tmp_path / "strict", settings) as store:
        plan = plan_import(store, export)
        assert [part.origin for part in plan.skipped] == ["conversations.json 1"]
        assert len(apply_plan(store, plan).written) == 1
