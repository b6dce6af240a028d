"""What a program that imports simplemem can count on."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import simplemem
from simplemem import (
    Conflict,
    EnhancedStore,
    Filter,
    Invalid,
    NotFound,
    Settings,
    SimplememError,
    Unavailable,
    open_store,
)


def in_a_fresh_process(code: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_importing_the_package_loads_almost_nothing() -> None:
    code = "import sys; before = set(sys.modules); import simplemem; print(*sorted(set(sys.modules) - before))"
    loaded = in_a_fresh_process(code).split()
    assert [name for name in loaded if name.startswith("simplemem")] == ["simplemem"] and len(
        loaded
    ) < 10


def test_a_session_can_complete_what_the_package_offers() -> None:
    assert set(simplemem.__all__) <= set(dir(simplemem))


def test_an_empty_path_is_no_vault() -> None:
    with pytest.raises(Invalid, match="path of the vault is empty"):
        open_store("")


USE = """
import sys
import traceback
from simplemem import open_store
with open_store(sys.argv[1]) as store:
    store.create("a", "The harbour crane, see [[b]].", {"tags": {"status": "done"}})
    store.sync()
    store.search("crane"); store.context("crane"); store.backlinks("a"); store.list(); store.undo("a")
heavy = {"mcp", "mcp_types", "typer", "click", "rich", "starlette", "uvicorn", "httpx", "anyio", "wordllama"}
above = ("simplemem.cli", "simplemem.server", "simplemem.tools")
print(sorted(heavy & {name.split(".")[0] for name in sys.modules}))
print(sorted(name for name in sys.modules if name.startswith(above)))
"""


def test_a_store_needs_neither_the_server_nor_the_command_line(vault: Path) -> None:
    assert in_a_fresh_process(USE, str(vault)).split("\n")[:2] == ["[]", "[]"]


FIND = """
import sys
import traceback
from simplemem import Settings, open_store
with open_store(sys.argv[1], settings=Settings.model_validate({"embed": {"provider": "none"}})) as store:
    print([hit.name for hit in store.search("crane", mode="text").hits])
print("simsimd" in sys.modules)
"""


def test_a_search_by_words_pays_for_no_vectors(vault: Path) -> None:
    with open_store(vault) as store:
        store.create("a", "The crane.")
    assert in_a_fresh_process(FIND, str(vault)).split("\n")[:2] == ["['a']", "False"]


def test_opening_a_path_makes_the_vault_and_closing_lets_go(tmp_path: Path) -> None:
    with open_store(tmp_path / "new" / "vault") as store:
        assert isinstance(store, EnhancedStore)
        store.create("a", "plum")
    assert (tmp_path / "new" / "vault" / "a.md").is_file()
    with open_store(str(tmp_path / "new" / "vault")) as store:
        assert store.read("a").content == "plum\n"


def test_what_is_no_vault_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotFound, match="no vault"):
        open_store(tmp_path / "file")
    with pytest.raises(NotFound, match="no vault"):
        open_store(tmp_path / "nowhere", read_only=True)
    assert not (tmp_path / "nowhere").exists()


def test_every_failure_has_a_code_a_sentence_and_its_details(vault: Path) -> None:
    with open_store(
        vault, settings=Settings.model_validate({"embed": {"provider": "none"}})
    ) as store:
        read = store.create("a", "one")
        store.update("a", append="two")
        with pytest.raises(SimplememError) as raised:
            store.update("a", content="x", if_sha256=read.sha256)
        error = raised.value
        assert isinstance(error, Conflict)
        told = json.loads(json.dumps(error.as_dict()))
        assert told["code"] == "conflict" and told["message"]
        assert told["hint"] and told["current_sha256"] == store.read("a").sha256
        with pytest.raises(NotFound) as missing:
            store.read("aa")
        assert missing.value.as_dict()["candidates"] == ["a"]


def test_every_answer_is_a_value_that_becomes_plain_json(vault: Path) -> None:
    with open_store(vault) as store:
        saved = store.create(
            "a", "plum [[b]]", {"tags": {"status": "done"}, "when": "2026-01-24", "x": [1, 2.5]}
        )
        store.create("b", "pear")
        report = store.sync()
        answers = [
            saved, store.read("a"), store.search("plum", explain=True), store.list(), store.context("plum"),
            *store.backlinks("b"), *store.history(), store.state(), store.move("b", "c"), store.delete("c"),
            store.undo("c"), Filter.of(tags="x", type=None),
        ]  # fmt: skip
        for answer in (*answers, report):
            assert json.loads(json.dumps(answer.as_dict())) == answer.as_dict()
        json.dumps([store.stats(), store.inspect(), store.tags()])
        for answer in answers:
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(answer, dataclasses.fields(answer)[0].name, "x")


def test_the_first_search_of_a_vault_that_was_never_indexed_finds_all_of_it(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"n{number}.md").write_text(
            f"# Crane {number}\n\nThe crane of pier{number} was greased.\n"
        )
    with open_store(tmp_path) as store:
        found = store.search("Which crane of pier17 was greased?")
        assert found.hits[0].name == "n17" and found.index.state == "ready"
    with open_store(tmp_path / "other") as store:
        store.create("Kite", "The kite flies over the harbour.")
        assert store.search("kite").index.state == "ready"
        assert store.search("kite", mode="semantic").hits[0].name == "Kite"


def test_a_context_and_a_list_are_whole_in_a_vault_that_was_never_indexed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The harbour crane, see [[b]].\n")
    (tmp_path / "b.md").write_text("A ferry.\n")
    for ask in (
        lambda store: store.context("crane").index,
        lambda store: store.list().index,
        lambda store: store.search("", filter=Filter(prefix="a")).index,
    ):
        (tmp_path / ".simplemem" / "index.db").unlink(missing_ok=True)
        with open_store(tmp_path) as store:
            state = ask(store)
            assert (state.state, state.notes) == ("ready", 2)
    (tmp_path / ".simplemem" / "index.db").unlink()
    with open_store(tmp_path) as store:
        assert [each.name for each in store.backlinks("b", kinds=["link"])] == ["a"]


def test_a_write_that_replaces_a_note_names_the_text_and_the_step(vault: Path) -> None:
    (vault / "tea.md").write_text("Oolong.\n")
    with open_store(vault) as store:
        saved = store.create("tea", "Green tea.", overwrite=True)
        assert saved.previous_sha256 is not None
        assert store.read("tea", version=saved.previous_sha256).content == "Oolong.\n"
        store.undo(saved.version)
    assert (vault / "tea.md").read_text() == "Oolong.\n"


def test_a_closed_store_refuses_every_call(vault: Path) -> None:
    store = open_store(vault)
    store.create("a", "plum")
    store.close()
    store.close()
    for call in (
        lambda: store.read("a"),
        lambda: store.search("plum"),
        lambda: store.create("b", "x"),
        store.stats,
    ):
        with pytest.raises(Unavailable, match="closed") as refused:
            call()
        assert "open_store" in refused.value.hint
    assert not (vault / "b.md").exists()


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        ("read", {"name": None}, "name must be str, not NoneType"),
        ("search", {"query": 5}, "query must be str, not int"),
        ("search", {"query": "plum", "limit": "3"}, r"limit must be int \| None, not str"),
        ("create", {"name": "a", "content": 3}, "content must be str, not int"),
        ("update", {"name": "a", "append": 7}, "append must be str"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(
    vault: Path, method: str, arguments: dict[str, object], named: str
) -> None:
    with open_store(vault) as store, pytest.raises(TypeError, match=named):
        getattr(store, method)(**arguments)


@pytest.mark.parametrize(
    ("method", "arguments", "hint"),
    [
        ("update", {"name": "a", "edits": {"old": "x", "new": "y"}}, '[{"old": "text"'),
        ("update", {"name": "a", "edits": ["x"]}, '{"old": "text"'),
        ("create", {"name": "b", "content": "x", "metadata": ["tag"]}, '{"type": "note"'),
        ("search", {"query": "x", "filter": {"tags": "decision"}}, "Filter.of(tags="),
        ("list", {"filter": {"tags": "decision"}}, "Filter.of(tags="),
        ("update", {"name": "a", "append": "y", "if_sha256": "zz"}, "that `read` returned"),
        ("delete", {"name": "a", "if_sha256": "zz"}, "that `read` returned"),
    ],
)
def test_an_argument_of_a_wrong_shape_is_invalid_and_the_hint_shows_a_right_one(
    vault: Path, method: str, arguments: dict[str, object], hint: str
) -> None:
    with open_store(vault) as store:
        store.create("a", "x")
        with pytest.raises(Invalid) as refused:
            getattr(store, method)(**arguments)
        assert hint in refused.value.hint
        assert store.read("a").content == "x\n"


def test_a_filter_with_values_of_a_wrong_type_is_invalid() -> None:
    for wrong in ({"since": 5}, {"prefix": 5}, {"properties": ["a"]}, {"require_all": "yes"}):
        with pytest.raises(Invalid, match=next(iter(wrong))):
            Filter.of(**wrong)


def test_a_folder_that_cannot_be_created_is_no_vault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotFound, match="cannot be created"):
        open_store(tmp_path / "file" / "notes")
    with pytest.raises(NotFound, match="is a file") as refused:
        open_store(tmp_path / "file")
    assert "folder that contains the file" in refused.value.hint


def test_a_store_shows_the_path_of_its_vault(vault: Path) -> None:
    with open_store(vault) as store:
        assert repr(str(vault)) in repr(store)


def test_hints_of_the_store_name_no_tool_of_the_server(vault: Path) -> None:
    with open_store(vault) as store:
        store.create("a", "x")
        with pytest.raises(SimplememError) as taken:
            store.create("a", "y")
        with pytest.raises(NotFound) as unknown:
            store.undo("v999999")
    for error in (taken.value, unknown.value):
        assert error.hint and "memor" not in error.hint


def test_a_traceback_shows_the_hint(vault: Path) -> None:
    with open_store(vault) as store:
        store.create("Pressure sensor", "x")
        with pytest.raises(NotFound) as missing:
            store.read("Presure sensor")
    shown = "".join(traceback.format_exception(missing.value))
    assert shown.endswith("no note called 'Presure sensor'\nDid you mean Pressure sensor?\n")
