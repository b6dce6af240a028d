"""A client that replaces a whole note does not overwrite what somebody changed since this client read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bare_client import Bare
from mcp import Client
from sdk_client import both, connected, run, text_of

from simplemem.store import open_store

Write = Callable[[str, str | bytes], Path]

READ_TEXT = "Oolong.\n"
EDITED_TEXT = "Oolong.\nIda prefers jasmine.\n"

# How each profile that has whole notes reads one and replaces one.
PROFILES: dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]] = {
    "default": (
        ("read_memory", {"name": "tea"}),
        ("update_memory", {"name": "tea", "content": "Green tea."}),
    ),
    "simplemem": (
        ("read_memory", {"name": "tea"}),
        (
            "update_memory",
            {
                "name": "tea",
                "content": "Green tea.",
                "metadata": {"title": "Tea", "description": "", "tags": {}},
            },
        ),
    ),
    "basic-memory": (
        ("read_note", {"identifier": "tea"}),
        (
            "write_note",
            {"title": "tea", "directory": "", "content": "Green tea.", "overwrite": True},
        ),
    ),
}


@both
@pytest.mark.parametrize("profile", PROFILES)
def test_an_update_without_a_hash_does_not_replace_an_edit_made_since_the_client_read_the_note(
    vault: Path, write: Write, mode: str, profile: str
) -> None:
    note = write("tea.md", READ_TEXT)
    (read, read_arguments), (replace, replace_arguments) = PROFILES[profile]

    async def body() -> None:
        async with connected(vault, mode, profile) as client:
            await client.call_tool(read, read_arguments)
            note.write_text(EDITED_TEXT)
            refused = await client.call_tool(replace, replace_arguments)
            assert refused.is_error
            assert "changed since" in text_of(refused)
            assert note.read_text() == EDITED_TEXT

            await client.call_tool(read, read_arguments)
            replaced = await client.call_tool(replace, replace_arguments)
            assert not replaced.is_error
            assert "Green tea." in note.read_text()
            assert "not read in this session" not in text_of(replaced)

    run(body)


@both
@pytest.mark.parametrize("profile", PROFILES)
def test_an_update_of_a_note_that_the_client_did_not_read_says_what_it_replaced_and_how_to_undo_it(
    vault: Path, write: Write, mode: str, profile: str
) -> None:
    note = write("tea.md", EDITED_TEXT)
    _, (replace, replace_arguments) = PROFILES[profile]

    async def body() -> None:
        async with connected(vault, mode, profile) as client:
            replaced = await client.call_tool(replace, replace_arguments)
            assert not replaced.is_error
            assert "Green tea." in note.read_text()
            text = text_of(replaced).lower()
            assert "not read in this session: 2 lines, last changed outside simplemem" in text
            assert "undo" in text
            assert "v000001" in text

    run(body)


async def _call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


def test_two_sessions_of_one_client_do_not_share_what_they_read(vault: Path, write: Write) -> None:
    note = write("tea.md", READ_TEXT)
    with Bare(vault) as first, Bare(vault) as second:
        first.initialize()
        second.initialize()
        first.call("read_memory", name="tea")
        note.write_text(EDITED_TEXT)
        second.call("read_memory", name="tea")
        refused = first.call("update_memory", name="tea", content="Green tea.")
        assert refused["structuredContent"]["error"]["code"] == "conflict"
        assert note.read_text() == EDITED_TEXT
        assert second.call("update_memory", name="tea", content="Green tea.")["structuredContent"][
            "changed"
        ]


@both
def test_a_resource_that_was_read_counts_as_a_note_that_was_read(
    vault: Path, write: Write, mode: str
) -> None:
    note = write("tea.md", READ_TEXT)

    async def body() -> None:
        async with connected(vault, mode) as client:
            await client.read_resource("memory://tea")
            note.write_text(EDITED_TEXT)
            refused = await client.call_tool(
                "update_memory", {"name": "tea", "content": "Green tea."}
            )
            assert refused.structured_content["error"]["code"] == "conflict"

    run(body)


@both
def test_an_overwriting_create_does_not_replace_an_edit_made_since_the_client_read_the_note(
    vault: Path, write: Write, mode: str
) -> None:
    note = write("tea.md", READ_TEXT)
    overwrite = {"name": "tea", "content": "Green tea.", "overwrite": True}

    async def body() -> None:
        async with connected(vault, mode) as client:
            await client.call_tool("read_memory", {"name": "tea"})
            note.write_text(EDITED_TEXT)
            refused = await client.call_tool("create_memory", overwrite)
            assert refused.structured_content["error"]["code"] == "conflict"
            assert "jasmine" in refused.structured_content["error"]["diff"]
            assert note.read_text() == EDITED_TEXT

            await client.call_tool("read_memory", {"name": "tea"})
            await _call(client, "create_memory", **overwrite)
            assert "Green tea." in note.read_text()

    run(body)


@both
def test_an_append_does_not_make_the_client_know_an_edit_that_it_followed(
    vault: Path, write: Write, mode: str
) -> None:
    note = write("tea.md", READ_TEXT)

    async def body() -> None:
        async with connected(vault, mode) as client:
            await _call(client, "read_memory", name="tea")
            note.write_text(EDITED_TEXT)
            await _call(client, "update_memory", name="tea", append="And mint.")
            refused = await client.call_tool(
                "update_memory", {"name": "tea", "content": "Green tea."}
            )
            assert refused.structured_content["error"]["code"] == "conflict"
            assert "jasmine" in note.read_text()

    run(body)


@both
def test_a_client_that_named_the_hash_of_an_edit_knows_the_text_that_it_then_wrote(
    vault: Path, write: Write, mode: str
) -> None:
    note = write("tea.md", READ_TEXT)

    async def body() -> None:
        async with connected(vault, mode, "default") as client:
            await client.call_tool("read_memory", {"name": "tea"})
            note.write_text(EDITED_TEXT)
            stale = {"name": "tea", "append": "Hot.", "if_sha256": "0" * 64}
            refused = await client.call_tool("update_memory", stale)
            assert refused.is_error and refused.structured_content is not None
            current = refused.structured_content["error"]["current_sha256"]
            appended = await client.call_tool(
                "update_memory", {"name": "tea", "append": "Hot.", "if_sha256": current}
            )
            assert not appended.is_error
            deleted = await client.call_tool("delete_memory", {"name": "tea"})
            assert not deleted.is_error, text_of(deleted)

    run(body)


@both
def test_a_client_that_alone_changed_a_note_goes_on_without_reading_it_again(
    vault: Path, write: Write, mode: str
) -> None:
    write("tea.md", READ_TEXT)
    write("list.md", "See [[tea]].\n")

    async def body() -> None:
        async with connected(vault, mode) as client:
            await _call(client, "read_memory", name="tea")
            await _call(client, "read_memory", name="list")
            await _call(client, "update_memory", name="tea", append="And mint.")
            await _call(client, "change_tag", name="tea", tags={"drink": True})
            await _call(client, "update_memory", name="tea", metadata={"status": "good"})
            await _call(client, "move_memory", name="tea", new_name="drinks/infusion")
            for name in ("drinks/infusion", "list"):
                done = await _call(
                    client, "update_memory", name=name, content=f"The text of {name}."
                )
                assert done["changed"]
                assert "warnings" not in done
            undone = await _call(client, "undo_change", name="list")
            assert undone["sha256"]
            done = await _call(client, "update_memory", name="list", content="Another text.")
            assert done["changed"]
            assert "warnings" not in done

    run(body)


@both
def test_a_note_that_the_client_made_is_one_that_it_knows(vault: Path, mode: str) -> None:
    async def body() -> None:
        async with connected(vault, mode) as client:
            await _call(client, "create_memory", name="tea", content="Oolong.")
            done = await _call(client, "update_memory", name="tea", content="Green tea.")
            assert "warnings" not in done
            (vault / "tea.md").write_text(EDITED_TEXT)
            refused = await client.call_tool(
                "update_memory", {"name": "tea", "content": "White tea."}
            )
            assert refused.structured_content["error"]["code"] == "conflict"

    run(body)


DELETIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("delete_memory", {"name": "tea"}),
    "simplemem": ("delete_memory", {"name": "tea"}),
    "basic-memory": ("delete_note", {"identifier": "tea"}),
}


@both
@pytest.mark.parametrize("profile", DELETIONS)
def test_a_deletion_without_a_hash_does_not_take_an_edit_made_since_the_client_read_the_note(
    vault: Path, write: Write, mode: str, profile: str
) -> None:
    note = write("tea.md", READ_TEXT)
    read, read_arguments = PROFILES[profile][0]
    delete, delete_arguments = DELETIONS[profile]

    async def body() -> None:
        async with connected(vault, mode, profile) as client:
            await client.call_tool(read, read_arguments)
            note.write_text(EDITED_TEXT)
            refused = await client.call_tool(delete, delete_arguments)
            assert refused.is_error and "changed since" in text_of(refused)
            assert note.read_text() == EDITED_TEXT

            await client.call_tool(read, read_arguments)
            deleted = await client.call_tool(delete, delete_arguments)
            assert not deleted.is_error and not note.exists()

    run(body)


@both
def test_a_note_that_was_not_read_is_deleted_and_the_answer_names_the_undo(
    vault: Path, write: Write, mode: str
) -> None:
    note = write("tea.md", READ_TEXT)

    async def body() -> None:
        async with connected(vault, mode) as client:
            deleted = await client.call_tool("delete_memory", {"name": "tea"})
            assert 'undo_change(version="v000001")' in text_of(deleted)
            assert not note.exists()

    run(body)


def test_a_client_without_a_token_cannot_pass_for_one_in_the_history(tmp_path: Path) -> None:
    with Bare(tmp_path, env={"SIMPLEMEM_EMBED_PROVIDER": "none"}) as bare:
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "ida:", "version": "claude-ai 1"},
        }
        bare.request("initialize", about)
        bare.notify("notifications/initialized")
        bare.call("create_memory", name="a", content="x")
        versions = bare.call("memory_history", name="a")["structuredContent"]["versions"]
    assert [version["who"] for version in versions] == ["ida:claude-ai 1"]


@both
def test_the_history_names_the_session_of_a_change_and_the_notes_that_were_read_in_it(
    vault: Path, write: Write, mode: str
) -> None:
    write("tea.md", READ_TEXT)
    write("milk.md", "Milk comes first.\n")
    write("water.md", "Water is boiled.\n")

    async def body() -> None:
        async with connected(vault, mode) as client:
            await _call(client, "create_memory", name="first", content="One.")
            await _call(client, "read_memory", name="tea")
            await _call(client, "build_context", query="what comes first, milk?")
            await client.read_resource("memory://water")
            await _call(client, "create_memory", name="second", content="Two.")
            await _call(client, "search_memories", query="boiled")
            await _call(client, "change_tag", name="first", tag="done")

    run(body)
    with open_store(vault) as store:
        tagged, second, first = store.history()
    assert first.session
    assert {second.session, tagged.session} == {first.session}
    assert first.sources == ()
    assert second.sources[0] == "water"
    assert second.sources[-1] == "tea"
    assert "milk" in second.sources
    assert tagged.sources[: len(second.sources)] == second.sources


@both
def test_hits_of_a_search_are_sources_after_what_was_read_and_never_displace_it(
    vault: Path, write: Write, mode: str
) -> None:
    for number in range(12):
        write(f"read {number}.md", "Assam.\n")
    write("found.md", "Oolong is boiled for three minutes.\n")

    async def body() -> None:
        async with connected(vault, mode) as client:
            await _call(client, "search_memories", query="oolong boiled")
            await _call(client, "create_memory", name="first", content="One.")
            await _call(client, "read_memory", name="read 0")
            await _call(client, "create_memory", name="second", content="Two.")
            for number in range(12):
                await _call(client, "read_memory", name=f"read {number}")
            await _call(client, "search_memories", query="oolong boiled")
            await _call(client, "create_memory", name="third", content="Three.")

    run(body)
    with open_store(vault) as store:
        third, second, first = store.history()
    assert first.sources[0] == "found"
    assert second.sources[:2] == ("read 0", "found")
    assert third.sources == tuple(f"read {number}" for number in range(11, 1, -1))


def test_two_sessions_of_one_client_have_different_ids_in_the_history(vault: Path) -> None:
    for name in ("first", "second"):
        with Bare(vault) as client:
            client.initialize()
            client.call("create_memory", name=name, content="A note.")
    with open_store(vault) as store:
        store.create("third", "By a person.")
        third, second, first = store.history()
    assert first.session != second.session
    assert third.session == ""
    assert third.sources == ()
