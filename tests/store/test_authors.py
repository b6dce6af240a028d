"""Hits say who wrote their passage, and a search can be of one author's words alone."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.config import Settings
from simplemem.memory import Filter, Hit
from simplemem.note.authors import COMMAND_LINE
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
ADA: dict[str, Any] = {"who": "ada-code 1.0"}
BOB: dict[str, Any] = {"who": "bob 2.0"}


def names(store: EnhancedStore, question: str, **more: Any) -> list[str]:
    return [hit.name for hit in store.search(question, limit=50, **more).hits]


def only(store: EnhancedStore, question: str, **more: Any) -> Hit:
    (hit,) = store.search(question, limit=50, **more).hits
    return hit


@pytest.fixture
def harbour(store: EnhancedStore, write: Write) -> EnhancedStore:
    """A note by a person, one by an agent, and one that both have written."""
    write("hand.md", "# Hand\n\nThe crane at the north pier needs grease.\n")
    store.sync()
    store.create("machine", "The crane was inspected in May.", tool="create_memory", **ADA)
    store.create("both", "An agent says that the lighthouse is green.", tool="create_memory", **ADA)
    note = store.vault.root / "both.md"
    write("both.md", note.read_text() + "\nA person says that the crane is yellow.\n")
    store.sync()
    return store


def test_a_hit_says_who_wrote_its_passage_and_when(harbour: EnhancedStore) -> None:
    found = {hit.name: hit for hit in harbour.search("crane", limit=9, authors=True).hits}
    assert {name: hit.authors for name, hit in found.items()} == {
        "hand": ("human",),
        "machine": ("ada-code 1.0",),
        "both": ("ada-code 1.0", "human"),  # both stand in what is shown, and she wrote more of it
    }
    made = harbour.history("machine")[0].when
    assert found["machine"].written is not None and made[14:16] == found["machine"].written[14:16]
    assert found["hand"].written is None  # nobody knows
    assert only(harbour, "lighthouse author:agent").authors == ("ada-code 1.0",)


def test_a_note_that_another_program_renames_keeps_its_authors(harbour: EnhancedStore, write: Write) -> None:
    root = harbour.vault.root
    (root / "both.md").rename(root / "pier.md")
    (root / "machine.md").rename(root / "inspections.md")
    harbour.sync()
    found = {hit.name: hit for hit in harbour.search("crane lighthouse", limit=9, authors=True).hits}
    assert found["inspections"].authors == ("ada-code 1.0",)
    assert only(harbour, "inspected author:ada").name == "inspections"
    assert names(harbour, "inspected author:human", mode="text") == []
    harbour.update("inspections", append="Bob oiled the winch.", **BOB)
    harbour.move("inspections", "done", **BOB)
    assert only(harbour, "winch author:bob", mode="text").name == "done"
    with EnhancedStore(root, harbour.settings) as anew:  # all of it told from the log again
        anew.sync()
        assert only(anew, "inspected author:ada", mode="text").name == "done"
        assert only(anew, "winch author:bob", mode="text").name == "done"
        assert names(anew, "winch author:ada", mode="text") == []


def test_a_copy_and_one_of_several_that_could_be_meant_take_nobodys_authors(
    harbour: EnhancedStore, write: Write
) -> None:
    root = harbour.vault.root
    (root / "copy.md").write_bytes((root / "machine.md").read_bytes())
    harbour.sync()
    assert [hit.name for hit in harbour.search("inspected author:human", mode="text").hits] == ["copy"]
    (root / "machine.md").rename(root / "one.md")
    harbour.sync()
    assert sorted(names(harbour, "inspected author:human", mode="text")) == ["copy", "one"]


def test_who_wrote_it_is_only_told_when_it_is_asked_for(harbour: EnhancedStore) -> None:
    assert {hit.authors for hit in harbour.search("crane").hits} == {()}
    assert () not in {hit.authors for hit in harbour.search("crane", authors=True).hits}
    found = harbour.search("crane author:any", mode="text")
    assert [hit.name for hit in found.hits] == names(harbour, "crane", mode="text")
    assert () not in {hit.authors for hit in found.hits}


def test_a_search_for_one_author_finds_passages_and_not_what_others_put_beside_them(harbour: EnhancedStore) -> None:
    assert set(names(harbour, "crane author:human", mode="text")) == {"hand", "both"}
    assert names(harbour, "crane author:agent", mode="text") == ["machine"]
    assert names(harbour, "lighthouse author:human", mode="text") == []
    assert names(harbour, "lighthouse author:ada", mode="text") == ["both"]
    assert names(harbour, "lighthouse author:bob") == []


@pytest.mark.parametrize("mode", ["text", "semantic", "hybrid"])
def test_what_is_shown_of_a_shared_note_is_the_authors_own(harbour: EnhancedStore, mode: str) -> None:
    for hit in harbour.search("lighthouse crane", filter=Filter(author="human"), mode=mode, limit=9).hits:
        assert "agent says" not in hit.snippet and hit.authors == ("human",)
    for hit in harbour.search("lighthouse crane", filter=Filter(author="agent"), mode=mode, limit=9).hits:
        assert "person says" not in hit.snippet and hit.authors == ("ada-code 1.0",)


def test_a_context_pack_of_one_author_holds_nothing_of_others(harbour: EnhancedStore) -> None:
    packed = harbour.context("lighthouse crane author:human")
    assert "yellow" in packed.text and "grease" in packed.text
    assert "lighthouse is green" not in packed.text and "inspected" not in packed.text


def test_the_newest_of_an_author_are_listed_without_a_question(harbour: EnhancedStore) -> None:
    assert set(names(harbour, "author:agent")) == {"machine", "both"}
    assert set(names(harbour, "author:human")) == {"hand", "both"}
    assert "agent says" not in next(h for h in harbour.search("author:human").hits if h.name == "both").snippet


def test_three_of_many_that_hold_the_words_are_all_found(plain_store: EnhancedStore, write: Write) -> None:
    """Neither the limit of hits nor the limits of the legs may be spent on what others wrote."""
    for k in range(400):
        write(f"n{k:03}.md", "The crane, the crane, the crane.\n")
    plain_store.sync()
    for k in (7, 300):
        plain_store.update(f"n{k:03}", append="The crane creaks.", tool="update_memory", **ADA)
    plain_store.create("late", "A long story in which at last somebody sees a crane.", tool="create_memory", **ADA)
    assert set(names(plain_store, "crane author:agent")) == {"n007", "n300", "late"}
    assert len(plain_store.search("crane author:human", limit=200).hits) == 200


def test_many_shared_notes_whose_words_are_anothers_hide_none_that_is_found(vault: Path, write: Write) -> None:
    for k in range(310):
        write(f"n{k:03}.md", "crane crane crane\n")
    quick = {"embed": {"provider": "none"}, "write": {"durability": "fast"}}
    with EnhancedStore(vault, Settings.model_validate(quick)) as store:
        store.sync()
        for k in range(310):
            text = "The pier is long." if k != 250 else "The pier is long, and a crane stands on it."
            store.update(f"n{k:03}", append=text, tool="update_memory", **BOB)
        assert names(store, "crane author:bob") == ["n250"]


def test_a_line_in_a_paragraph_of_somebody_else_is_found_and_shown_alone(harbour: EnhancedStore) -> None:
    harbour.update("hand", append="The walrus sleeps under it.", tool="update_memory", **ADA)
    text = (harbour.vault.root / "hand.md").read_text()
    assert "grease.\nThe walrus" in text  # one paragraph
    hit = only(harbour, "walrus author:agent", mode="text")
    assert (hit.snippet, hit.line, hit.authors) == ("The walrus sleeps under it.", 4, ("ada-code 1.0",))
    assert names(harbour, "walrus author:human", mode="text") == []
    assert names(harbour, "grease author:agent", mode="text") == []
    assert "walrus" not in only(harbour, "grease author:human", mode="text").snippet
    assert "grease" not in harbour.context("walrus author:agent").text


def test_a_phrase_that_another_wrote_is_not_found_as_the_authors(harbour: EnhancedStore) -> None:
    assert names(harbour, '"lighthouse is green" author:human', mode="text") == []
    assert names(harbour, '"crane is yellow" author:human', mode="text") == ["both"]


def test_a_quoted_operator_is_words(harbour: EnhancedStore, write: Write) -> None:
    write("howto.md", "Write author:human to find what people wrote.")
    harbour.sync()
    assert names(harbour, '"author:human"', mode="text") == ["howto"]


def test_the_commands_are_a_persons(plain_store: EnhancedStore) -> None:
    plain_store.create("tea", "Oolong.", who=COMMAND_LINE, tool="new")
    plain_store.create("coffee", "Oolong too.", who=COMMAND_LINE, tool="create_memory")  # a client that calls itself so
    assert names(plain_store, "oolong author:human") == ["tea"]


def test_an_author_is_followed_through_moves_and_undone_deletes(plain_store: EnhancedStore) -> None:
    plain_store.create("tea", "Oolong.", tool="create_memory", **ADA)
    plain_store.move("tea", "drinks/tea", tool="move_memory", **BOB)
    plain_store.delete("drinks/tea", tool="delete_memory", **BOB)
    plain_store.undo("drinks/tea", who=COMMAND_LINE)
    hit = only(plain_store, "oolong", authors=True)
    assert (hit.name, hit.authors) == ("drinks/tea", ("ada-code 1.0",))
    assert names(plain_store, "oolong author:ada") == ["drinks/tea"]


def test_a_change_is_seen_by_the_next_search(harbour: EnhancedStore, write: Write) -> None:
    assert names(harbour, "crane author:agent", mode="text") == ["machine"]
    harbour.update("hand", append="The crane sings.", tool="update_memory", **ADA)
    assert set(names(harbour, "crane author:agent", mode="text")) == {"machine", "hand"}
    write("machine.md", "A person wrote all of it again, the crane too.\n")
    harbour.sync()
    assert names(harbour, "crane author:agent", mode="text") == ["hand"]


def test_a_note_edited_outside_between_search_and_answer_is_looked_at_again(
    harbour: EnhancedStore, vault: Path
) -> None:
    harbour.update("hand", append="An agent saw the walrus.", tool="update_memory", **ADA)
    assert names(harbour, "walrus author:agent", mode="text") == ["hand"]
    text = (vault / "hand.md").read_text()
    (vault / "hand.md").write_text("A new line above all others, that moves every block.\n\n" + text)
    hit = only(harbour, "walrus author:agent", mode="text")
    assert "walrus" in hit.snippet and hit.authors == ("ada-code 1.0",)


def test_a_text_that_is_no_longer_kept_names_nobody_that_is_not_certain(store: EnhancedStore, vault: Path) -> None:
    store.create("tea", "Oolong by Ada.", tool="create_memory", **ADA)
    store.update("tea", append="Sencha by Bob.", who=COMMAND_LINE)
    first = store.history("tea")[1].sha256 or ""
    os.remove(vault / ".simplemem" / "history" / "objects" / first[:2] / first)
    for place in (vault / ".simplemem" / "history" / "displaced").iterdir():
        place.unlink()
    assert only(store, "oolong", mode="text", authors=True).authors == ("unknown",)
    assert names(store, "oolong author:agent", mode="text") == []
    assert names(store, "oolong author:unknown", mode="text") == ["tea"]


def test_an_explained_search_counts_what_the_author_left(harbour: EnhancedStore) -> None:
    told = harbour.search("crane author:agent", explain=True).explain
    assert told is not None
    assert told["filters"] == [{"filter": "author", "value": "agent", "removed": 1, "removed_alone": 1, "left": 2}]
    assert told["filter"] == {"author": "agent"}


def test_why_says_that_the_author_removes_a_note_or_wrote_none_of_the_words(harbour: EnhancedStore) -> None:
    told = harbour.search("crane author:agent", why="hand", mode="text").why
    assert told is not None
    assert told["verdict"] == "filtered" and told["filters"] == [{"filter": "author", "value": "agent"}]
    told = harbour.search("lighthouse author:human", why="both", mode="text").why
    assert told is not None
    assert told["verdict"] == "no_match" and "written by human" in told["because"]


def test_a_server_and_a_command_find_the_same_of_one_author(harbour: EnhancedStore, vault: Path) -> None:
    """The one holds vectors in memory, the other compares them in SQL."""
    one = [(h.name, h.score, h.snippet) for h in harbour.search("green crane author:human").hits]
    with EnhancedStore(vault, Settings()) as again:
        again.core.index.keep_vectors_in_memory()
        two = [(h.name, h.score, h.snippet) for h in again.search("green crane author:human").hits]
    assert one == two and len(one) == 2


def test_git_names_the_person_where_the_history_knows_none(store: EnhancedStore, git: Any, write: Write) -> None:
    write("hand.md", "The crane needs grease.\n\nThe lighthouse is green.\n")
    write("kettle.md", "The kettle is copper.\n")
    git("add", "--all")
    git("commit", "-m", "notes", "--author", "Ida Marsh <ida@example.org>", "--date", "2025-03-01T12:00:00")
    write("hand.md", "The crane needs grease.\n\nThe lighthouse is blue.\n")
    store.sync()
    store.update("hand", append="The walrus sleeps.", tool="update_memory", **ADA)
    told = {word: only(store, word, mode="text", authors=True) for word in ("crane", "kettle")}
    assert told["crane"].authors == ("Ida Marsh", "human", "ada-code 1.0")  # nobody has committed the second line
    assert told["kettle"].authors == ("Ida Marsh",) and (told["kettle"].written or "")[:10] == "2025-03-01"
    assert only(store, "kettle author:human", mode="text").authors == ("human",)  # a filter starts no git


def test_an_agent_of_another_machine_is_known_by_its_commits(store: EnhancedStore, git: Any, write: Write) -> None:
    write("machine.md", "The crane was inspected.\n")
    git("add", "--", "machine.md")
    git("commit", "-m", "simplemem: create machine\n\nSimplemem-Actor: ada-code 1.0\nSimplemem-Tool: create_memory\n")
    store.sync()
    assert only(store, "crane", mode="text", authors=True).authors == ("ada-code 1.0",)


@pytest.mark.parametrize("seed", range(4))
def test_a_word_is_found_as_its_writers_and_as_nobody_elses(plain_store: EnhancedStore, vault: Path, seed: int) -> None:
    """Whatever was appended, put in between, moved, taken out and undone by agents, a person and an editor."""
    store, chance = plain_store, random.Random(seed)
    writers: dict[str, str] = {}  # of each word that stands in some note
    paths = [f"n{k}" for k in range(4)]
    for path in paths:
        store.create(path, f"Begun with made{path}.", tool="create_memory", **ADA)
        writers[f"made{path}"] = "ada"
    for turn in range(40):
        place = chance.randrange(len(paths))
        path, word = paths[place], f"word{turn}"
        act = chance.choice(["ada", "bob", "human", "editor", "move", "cut", "undo"])
        if act in ("ada", "bob"):
            store.update(path, append=f"Then {word}.", tool="update_memory", **{"ada": ADA, "bob": BOB}[act])
            writers[word] = act
        elif act == "human":
            store.update(path, append=f"\nThen {word}.", who=COMMAND_LINE)
            writers[word] = "human"
        elif act == "editor":
            lines = (vault / f"{path}.md").read_text().split("\n")
            start = max((k for k, line in enumerate(lines) if line == "---"), default=-1) + 1
            lines.insert(chance.randint(start, len(lines)), f"Noted {word}.")
            (vault / f"{path}.md").write_text("\n".join(lines))
            store.sync()
            writers[word] = "human"
        elif act == "move":
            paths[place] = f"moved/{turn}"
            store.move(path, paths[place], tool="move_memory", **BOB)
        elif act == "cut":
            lines = (vault / f"{path}.md").read_text().split("\n")
            said = [line for line in lines if line.startswith(("Then", "Noted", "Begun"))]
            if len(said) > 1:
                gone = chance.choice(said)
                store.update(path, edits=[{"old": gone, "new": ""}], tool="update_memory", **BOB)
                del writers[gone.removesuffix(".").rpartition(" ")[2]]
        else:
            store.update(path, content="All of it is gone.", tool="update_memory", **BOB)
            store.undo(path, who="bob 2.0", tool="undo_change")
    assert len(writers) > 10
    for word, writer in writers.items():
        found = {author for author in ("ada", "bob", "human") if names(store, f"{word} author:{author}")}
        assert found == {writer}, word
