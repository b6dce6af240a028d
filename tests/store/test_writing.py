"""Every change is on the disk, in the index and in the history before it is acknowledged, and touches nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.errors import AlreadyExists, Conflict, Invalid, SimplememError, TooLong, Unreadable
from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.calls import ToolCall, answer_call
from simplemem.server.executor import StoreExecutor
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
NEVER_READ = "0" * 64
ODD = "\ufeff---\r\n# mine\r\nzeta: 'q'   # why\r\ntags: [a,  b]\r\nalpha: 1\r\n---\r\n\r\nFirst line\r\nlast line"


def found(store: EnhancedStore, query: str) -> list[str]:
    return [hit.name for hit in store.search(query, mode="text", limit=50).hits]


def errors(store: EnhancedStore) -> list[str]:
    return [finding.message for finding in store.doctor() if finding.level == "error"]


# -- create


def test_a_created_memory_is_a_file_found_at_once(plain_store: EnhancedStore, vault: Path) -> None:
    saved = plain_store.create(
        "ideas/tea",
        "Oolong first.",
        {"title": "Tea", "tags": {"status": "done", "todo": True}, "rating": 5},
    )
    text = (vault / "ideas/tea.md").read_text()
    memory = plain_store.read("ideas/tea")
    assert memory.content == "Oolong first.\n"
    assert (memory.title, memory.frontmatter["rating"]) == ("Tea", 5)
    assert set(memory.tags) == {"status/done", "todo"}
    assert memory.tag_map == saved.tag_map == {"status": "done", "todo": True}
    assert memory.frontmatter["created"] == memory.frontmatter["modified"]
    assert text.startswith("---\ntitle: Tea\ntags:\n  - status/done\n  - todo\n")
    assert memory.sha256 == saved.sha256
    assert (saved.changed, saved.previous_sha256, saved.warnings) == (True, None, ())
    assert found(plain_store, "oolong") == ["ideas/tea"]
    assert errors(plain_store) == []


def test_a_name_that_is_taken_is_not_overwritten_unless_asked(
    plain_store: EnhancedStore, vault: Path
) -> None:
    plain_store.create("a", "one")
    with pytest.raises(AlreadyExists) as refused:
        plain_store.create("a", "two")
    assert refused.value.details["current_sha256"] == plain_store.read("a").sha256
    assert plain_store.read("a").content == "one\n"
    saved = plain_store.create("a", "two", overwrite=True)
    assert found(plain_store, "two") == ["a"]
    assert found(plain_store, "one") == []
    plain_store.undo(saved.version)
    assert plain_store.read("a").content == "one\n"


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "a\0b", "CON", "a//b", ".hidden", "", " ", "a/.", "x" * 300, "a:b"],
)
def test_a_name_that_cannot_be_a_file_everywhere_makes_none(
    plain_store: EnhancedStore, vault: Path, name: str
) -> None:
    before = sorted(vault.parent.rglob("*.md"))
    with pytest.raises((Invalid, TooLong)):
        plain_store.create(name, "text")
    assert sorted(vault.parent.rglob("*.md")) == before


@pytest.mark.parametrize(
    "metadata",
    [
        {"": "x"},
        {"a\nb": "x"},
        {"tags": {"": "x"}},
        {"x": "\ud800"},
        {"x": object()},
        {"x": {"y": object()}},
    ],
)
def test_metadata_that_cannot_be_written_makes_no_note(
    plain_store: EnhancedStore, vault: Path, metadata: dict[str, Any]
) -> None:
    with pytest.raises(SimplememError):
        plain_store.create("a", "text", metadata)
    assert list(vault.glob("*.md")) == []


def test_a_new_note_rewrites_no_other_unless_told(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("far/Ada.md", "the first Ada")
    write("diary.md", "I met [[Ada]] and `[[Ada]]`.")
    plain_store.sync()
    with pytest.raises(AlreadyExists, match="in diary") as raised:
        plain_store.create("Ada", "another Ada")
    assert "another name" in raised.value.hint and "overwrite" in raised.value.hint
    assert (
        not (vault / "Ada.md").exists()
        and (vault / "diary.md").read_text() == "I met [[Ada]] and `[[Ada]]`."
    )
    saved = plain_store.create("Ada", "another Ada", overwrite=True)
    assert errors(plain_store) == []
    assert plain_store.read("diary").links[0].target == "far/Ada"
    assert "`[[Ada]]`" in (vault / "diary.md").read_text()
    assert any("diary" in warning for warning in saved.warnings)


def test_a_new_note_names_what_it_links_to_in_vain_and_what_says_nearly_the_same(
    plain_store: EnhancedStore,
) -> None:
    plain_store.create(
        "crane", "The harbour crane lifts forty tonnes and was repaired by Ida in spring."
    )
    plain_store.create("tea", "Oolong is steeped three minutes by everybody in the office.")
    saved = plain_store.create(
        "lift",
        "Ida repaired the harbour crane in spring. It lifts forty tonnes. See [[tea]], [[Ida]].",
    )
    assert saved.warnings == (
        "unresolved links: [[Ida]]",
        "crane is nearly the same (80% of the words): one of the two may be enough",
    )
    assert (
        plain_store.create(
            "other", "The crane stands by the water, as cranes do. [[lift]]"
        ).warnings
        == ()
    )


# -- update


def test_of_several_edits_all_are_made_or_none(plain_store: EnhancedStore) -> None:
    saved = plain_store.create("a", "one two two three")
    for edits, why in (
        ([{"old": "one", "new": "1"}, {"old": "nowhere", "new": "x"}], "is not in the note"),
        ([{"old": "one", "new": "1"}, {"old": "two", "new": "x"}], "2 times"),
        ([{"old": "", "new": "x"}], "no text"),
        ([{"old": "one"}], "needs"),
    ):
        with pytest.raises(Invalid, match=why):
            plain_store.update("a", edits=edits)  # type: ignore[arg-type]
    assert plain_store.read("a").sha256 == saved.sha256


def test_an_edit_that_finds_nothing_names_the_nearest_line(plain_store: EnhancedStore) -> None:
    plain_store.create("a", "The crane was repaired in spring.\nAnother line.")
    with pytest.raises(Invalid) as refused:
        plain_store.update("a", edits=[{"old": "The crane was repaird in spring", "new": "x"}])
    assert "The crane was repaired in spring." in refused.value.hint


def test_an_append_is_not_absorbed_by_the_table_it_follows(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    write("prices.md", table)
    assert not plain_store.update("prices", append="Helium went up.").warnings
    assert (vault / "prices.md").read_text() == f"{table}\n\nHelium went up.\n"


def test_an_append_into_code_that_is_not_closed_says_so(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("log.md", "```\ncode\n")
    [warning] = plain_store.update("log", append="Words.").warnings
    assert "the note ends in a code block that is not closed" in warning
    assert (vault / "log.md").read_text() == "```\ncode\nWords.\n"


def test_a_change_that_changes_nothing_is_no_change(
    plain_store: EnhancedStore, vault: Path
) -> None:
    plain_store.create("a", "one", {"modified": "x"})
    before = (vault / "a.md").stat()
    saved = plain_store.update("a", content="one\n")
    assert not saved.changed
    assert (vault / "a.md").stat().st_mtime_ns == before.st_mtime_ns
    assert len(plain_store.history("a")) == 1


# -- hashes, conflicts, repetitions


CHANGES: dict[str, Callable[[EnhancedStore, str | None], Any]] = {
    "content": lambda s, sha: s.update("a", content="replaced", if_sha256=sha),
    "append": lambda s, sha: s.update("a", append="appended", if_sha256=sha),
    "edits": lambda s, sha: s.update("a", edits=[{"old": "mine", "new": "edited"}], if_sha256=sha),
    "metadata": lambda s, sha: s.update("a", metadata={"rating": 5}, if_sha256=sha),
    "tags": lambda s, sha: s.change_tags("a", {"status": "done"}, if_sha256=sha),
    "delete": lambda s, sha: s.delete("a", if_sha256=sha),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_wrong_hash_is_a_conflict_that_shows_what_is_there_now(
    plain_store: EnhancedStore, vault: Path, change: str
) -> None:
    read = plain_store.create("a", "mine")
    plain_store.update("a", append="theirs")
    now = (vault / "a.md").read_bytes()
    with pytest.raises(Conflict) as conflict:
        CHANGES[change](plain_store, read.sha256)
    assert conflict.value.details["current_sha256"] == plain_store.read("a").sha256
    assert "+theirs" in conflict.value.details["diff"].split("\n")
    assert conflict.value.hint
    assert (vault / "a.md").read_bytes() == now


@pytest.mark.parametrize("change", CHANGES)
def test_a_repeated_change_whose_answer_was_lost_succeeds_and_is_made_once(
    plain_store: EnhancedStore, vault: Path, change: str
) -> None:
    read = plain_store.create("a", "mine", {"modified": "x"})
    CHANGES[change](plain_store, read.sha256)
    files = {path: path.read_bytes() for path in vault.glob("*.md")}
    versions = len(plain_store.history("a"))
    CHANGES[change](plain_store, read.sha256)
    assert {path: path.read_bytes() for path in vault.glob("*.md")} == files
    assert len(plain_store.history("a")) == versions


def test_a_repeated_create_and_move_succeed(plain_store: EnhancedStore) -> None:
    first = plain_store.create("a", "one", {"tags": ["x"]})
    again = plain_store.create("a", "one", {"tags": ["x"]})
    assert (again.sha256, again.changed) == (first.sha256, False)
    moved = plain_store.move("a", "b")
    assert plain_store.move("a", "b").name == moved.name == "b"
    assert len(plain_store.history()) == 2


def test_a_repeated_create_with_a_map_of_tags_succeeds(plain_store: EnhancedStore) -> None:
    tags = {"tags": {"status": "done"}}
    first = plain_store.create("a", "one", tags, tags_as_map=True)
    again = plain_store.create("a", "one", tags, tags_as_map=True)
    assert (again.sha256, again.changed) == (first.sha256, False)


def test_a_file_is_put_in_place_as_an_editor_saves_it(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("a.md", ODD)
    read = plain_store.read("a")
    saved = plain_store.write_text("a", ODD.replace("alpha: 1", "alpha: 2"), if_sha256=read.sha256)
    assert (vault / "a.md").read_bytes().decode() == ODD.replace("alpha: 1", "alpha: 2")
    with pytest.raises(Conflict):
        plain_store.write_text("a", "x", if_sha256=read.sha256)
    assert plain_store.read("a").sha256 == saved.sha256


# -- tags in three notations


def test_tags_in_metadata_merge_as_a_map_and_replace_as_a_list(plain_store: EnhancedStore) -> None:
    plain_store.create("a", "x", {"tags": ["one", "two"]})
    plain_store.update("a", metadata={"tags": {"one": None, "three": True}})
    assert set(plain_store.read("a").tags) == {"two", "three"}
    plain_store.update("a", metadata={"tags": ["four"]})
    assert plain_store.read("a").tags == ("four",)
    plain_store.update("a", metadata={"tags": None})
    assert plain_store.read("a").tags == ()


# -- notes that must not be rewritten


BROKEN = [
    "---\ntitle: [\n---\nbody plum\n",
    "---\na: &x 1\nb: *x\n---\nbody plum\n",
    "---\na: 1\na: 2\n---\nbody plum\n",
]


@pytest.mark.parametrize(
    "text", [*BROKEN, b"---\ntitle: x\n---\nbody plum caf\xe9\n", b"\xff\xfeplum"]
)
def test_a_note_that_cannot_be_read_whole_is_served_and_never_rewritten(
    plain_store: EnhancedStore, write: Write, vault: Path, text: str | bytes
) -> None:
    file = write("a.md", text)
    before = file.read_bytes()
    plain_store.sync()
    memory = plain_store.read("a")
    assert memory.problem
    for change in ("content", "append", "metadata", "tags"):
        with pytest.raises(Unreadable) as refused:
            CHANGES[change](plain_store, None)
        assert refused.value.hint or "line" in refused.value.details or refused.value.message
    assert file.read_bytes() == before
    assert "a" in {item.name for item in plain_store.list().items}
    assert [problem["path"] for problem in plain_store.stats()["problems"]] == ["a.md"]


# -- undo


# -- whoever listens


def test_who_listens_hears_of_every_change_once_it_can_be_found(
    plain_store: EnhancedStore, write: Write
) -> None:
    heard: list[tuple[frozenset[str], int]] = []
    plain_store.on_change(lambda names: heard.append((names, len(found(plain_store, "plum")))))
    plain_store.create("a", "plum")
    plain_store.update("a", append="x")
    plain_store.move("a", "b")
    write("c.md", "plum")
    plain_store.sync()
    plain_store.delete("b")
    assert [names for names, _ in heard] == [{"a"}, {"a"}, {"a", "b"}, {"c"}, {"b"}]
    assert [count for _, count in heard] == [1, 1, 1, 2, 1]


def test_an_error_of_a_listener_is_no_error_of_the_change(
    plain_store: EnhancedStore, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(names: frozenset[str]) -> None:
        raise KeyError(*names)

    heard: list[frozenset[str]] = []
    plain_store.on_change(fail)
    plain_store.on_change(heard.append)
    assert plain_store.create("a", "plum").name == "a"
    assert heard == [frozenset({"a"})]
    assert "which listens to changes, raised an error" in caplog.text and "KeyError" in caplog.text


def test_the_answer_says_so_when_a_new_note_will_be_excluded_from_search(
    plain_store: EnhancedStore, vault: Path
) -> None:
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "app.json").write_text('{"userIgnoreFilters": ["drafts/"]}')
    saved = plain_store.create("drafts/Plan", "A plan of the harbour.")
    [warning] = saved.warnings
    assert warning == "drafts/Plan is not searched: excluded in Obsidian's settings (drafts/)"
    assert plain_store.search("harbour").hits == ()
    plain_store.create("Other", "A plan of the lighthouse.")
    assert "is not searched" in " ".join(plain_store.move("Other", "drafts/Other").warnings)
    assert plain_store.update("drafts/Plan", append="More.").warnings == ()


def test_a_profile_whose_answers_have_no_warnings_says_it_beside_the_answer(vault: Path) -> None:
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "app.json").write_text('{"userIgnoreFilters": ["graph/"]}')
    tools = {tool.name: tool for tool in choose_tools(built_in_profiles()["server-memory"])}
    door = StoreExecutor(
        lambda: EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}}))
    )
    sent = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["flies"]}]}
    answer, notice = answer_call(tools["create_entities"], door, ToolCall(sent, "test 1")).content
    assert json.loads(answer.text)[0]["name"] == "Ada"
    assert notice.text.startswith("graph/Ada is not searched")
    sent = {"observations": [{"entityName": "Ada", "contents": ["swims"]}]}
    assert len(answer_call(tools["add_observations"], door, ToolCall(sent, "test 1")).content) == 1
    door.close(writing=5.0, closing=5.0)
