"""Past sessions are searched when they are asked for, and are in no answer otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.index.api import IndexQuery
from simplemem.models import Filter
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
NOTES = {
    "crane.md": "# Crane\n\nThe harbour crane lifts twenty tonnes.\n",
    "archive/old crane.md": "The old crane of the harbour was sold, see [[crane]].\n",
    "log.md": "---\ntype: session\n---\nA session of yoga beside the crane.\n",
}
SESSION = "---\ntype: session\n---\nHow tall is the harbour crane? The harbour crane is forty metres tall. ziggurat\n"
AT = "archive/sessions/2026/01/Tall crane"


@pytest.fixture
def filled(store: EnhancedStore, write: Write) -> EnhancedStore:
    for path, text in {**NOTES, f"{AT}.md": SESSION}.items():
        write(path, text)
    store.sync()
    return store


def names(store: EnhancedStore, query: str, **how: Any) -> set[str]:
    return {hit.name for hit in store.search(query, limit=50, **how).hits}


@pytest.mark.parametrize("mode", ["text", "semantic", "hybrid"])
@pytest.mark.parametrize(
    "query", ["harbour crane", "how tall is the harbour crane?", '"harbour crane"', ""]
)
def test_a_session_is_among_no_answers_unless_it_is_asked_for(
    filled: EnhancedStore, query: str, mode: str
) -> None:
    assert AT not in names(filled, query, mode=mode)
    assert names(filled, f"archive: {query}", mode=mode) == {AT}
    for asked in (
        Filter(prefix="archive/sessions"),
        Filter(prefix="Archive/Sessions/2026/"),
        Filter(type="Session"),
    ):
        assert AT in names(filled, query, mode=mode, filter=asked)


def test_lists_packs_and_what_is_related_leave_it_out_too(filled: EnhancedStore) -> None:
    assert {each.name for each in filled.list().items} == {"crane", "archive/old crane", "log"}
    assert [each.name for each in filled.list(filter=Filter(prefix="archive/sessions/")).items] == [
        AT
    ]
    assert "forty" not in filled.context("how tall is the harbour crane?").text
    assert "forty" in filled.context("archive: how tall is the harbour crane?").text
    assert AT not in {each.name for each in filled.backlinks("crane", limit=50)}
    assert "forty" in filled.read(AT).content
    assert filled.names() == ["archive/old crane", "crane", "log", AT]


def test_a_link_that_a_person_puts_into_a_session_is_a_backlink(
    filled: EnhancedStore, write: Write
) -> None:
    write(f"{AT}.md", f"{SESSION}\nSee [[crane]].\n")
    filled.sync()
    assert AT in {each.name for each in filled.backlinks("crane", kinds=["link"])}


def test_other_notes_of_an_archive_and_of_that_type_stay_among_the_answers(
    filled: EnhancedStore,
) -> None:
    assert {"archive/old crane", "log"} <= names(filled, "crane")


def test_where_nothing_is_found_it_says_that_sessions_were_left_out(filled: EnhancedStore) -> None:
    for nothing in (filled.search("ziggurat", mode="text"), filled.search("crane tag:none")):
        assert "`archive:` includes them" in nothing.degraded
    assert "archive:" not in filled.search("archive: zikkurat", mode="text").degraded


def test_a_search_says_why_a_session_is_no_hit(filled: EnhancedStore) -> None:
    why = filled.search("ziggurat", why=AT).why
    assert why is not None
    assert (why["verdict"], "archive:" in why["hint"]) == ("filtered", True)


@pytest.mark.parametrize("folders", [[], ["talks/"]])
def test_the_settings_name_other_folders_or_none(
    vault: Path, write: Write, folders: list[str]
) -> None:
    for path, text in {**NOTES, f"{AT}.md": SESSION, "talks/a.md": "The crane talk."}.items():
        write(path, text)
    with EnhancedStore(vault, Settings.model_validate({"search": {"archive": folders}})) as store:
        store.sync()
        assert AT in names(store, "crane")
        assert ("talks/a" in names(store, "crane")) is not bool(folders)


def test_without_an_archive_nothing_is_filtered_and_every_number_stays(
    vault: Path, write: Write
) -> None:
    for path, text in NOTES.items():
        write(path, text)
    asked, answers = ("harbour crane", "which crane was sold?", ""), []
    for folders in ([], ["archive/sessions/"]):
        with EnhancedStore(
            vault, Settings.model_validate({"search": {"archive": folders}})
        ) as store:
            store.sync()
            index = store._parts.index
            assert (
                index.folders_with_notes(store._parts.searching.filters.archive) == ()
                and index.ask(IndexQuery(like="n.md")).passed is None
            )
            answers.append([store.search(query, explain=True).as_dict() for query in asked])
            assert (
                "No note matches archive=archive/sessions/"
                in store.search("archive: crane").degraded
            )
    assert answers[0] == answers[1]
    assert all(each["explain"]["filters"] == [] for each in answers[0])


@pytest.mark.parametrize(
    ("query", "asks"),
    [("archive:crane", True), ("the archive: crane", True), ("archive crane", False)],
)
def test_the_operator_stands_where_a_word_begins(
    filled: EnhancedStore, query: str, asks: bool
) -> None:
    assert (names(filled, query) == {AT}) is asks
