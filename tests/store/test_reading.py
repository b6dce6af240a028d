"""What is asked is answered from what is in the vault now, and says how far it can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import Ambiguous, Invalid, NotFound, ReadOnly, SimplememError
from simplemem.models import Filter, Mention
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}})


def found(store: EnhancedStore, query: str, mode: str = "text") -> list[str]:
    return [hit.name for hit in store.search(query, mode=mode, limit=50).hits]


# -- names


@pytest.fixture
def named(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    write("projects/Apollo.md", "---\ntitle: The lunar project\naliases: [Moon, Luna]\n---\nx")
    write("Résumé.md", "y")
    write("people/Ada.md", "z")
    write("Apollo 13.md", "w")
    plain_store.sync()
    return plain_store


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("projects/Apollo", "projects/Apollo"),
        ("projects/Apollo.md", "projects/Apollo"),
        ("/projects/Apollo", "projects/Apollo"),
        ("PROJECTS/apollo", "projects/Apollo"),
        ("apollo", "projects/Apollo"),
        ("The lunar project", "projects/Apollo"),
        ("moon", "projects/Apollo"),
        ("[[Apollo]]", "projects/Apollo"),
        ("[[projects/Apollo|the project]]", "projects/Apollo"),
        ("  people/Ada  ", "people/Ada"),
        ("Re\u0301sume\u0301", "Résumé"),
        ("RÉSUMÉ", "Résumé"),
        ("Apollo 13", "Apollo 13"),
    ],
)
def test_a_memory_is_found_by_path_name_title_alias_or_link(
    named: EnhancedStore, said: str, meant: str
) -> None:
    assert named.resolve(said) == meant
    assert named.read(said).name == meant


def test_a_path_beats_a_name_a_name_a_title_and_a_title_an_alias(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("tea.md", "path")
    write("x/Tea.md", "name")
    write("b.md", "---\ntitle: coffee\n---\n")
    write("c.md", "---\naliases: [coffee]\n---\n")
    write("Cocoa.md", "name")
    write("d.md", "---\ntitle: Cocoa\n---\n")
    plain_store.sync()
    assert plain_store.resolve("tea") == "tea"
    assert plain_store.resolve("COFFEE") == "b"
    assert plain_store.resolve("cocoa") == "Cocoa"


def test_what_could_mean_several_is_an_error_that_lists_them_all(
    plain_store: EnhancedStore, write: Write
) -> None:
    for path in ("b/Note.md", "a/Note.md", "c/note.md"):
        write(path, "x")
    write("d.md", "---\naliases: [Twin]\n---\n")
    write("e.md", "---\naliases: [twin]\n---\n")
    plain_store.sync()
    for said, candidates in (("NOTE", ["a/Note", "b/Note", "c/note"]), ("twin", ["d", "e"])):
        with pytest.raises(Ambiguous) as refused:
            plain_store.read(said)
        assert refused.value.details["candidates"] == candidates


def test_a_mistyped_name_is_answered_with_the_nearest(named: EnhancedStore) -> None:
    with pytest.raises(NotFound) as refused:
        named.read("projects/Appolo")
    assert "projects/Apollo" in refused.value.details["candidates"]
    assert "projects/Apollo" in refused.value.hint
    with pytest.raises(NotFound) as refused:
        named.read("zzzzzzzz")
    assert "candidates" not in refused.value.details
    with pytest.raises(Invalid):
        named.read("  ")


def test_names_are_completed_from_their_beginning_or_their_last_part(named: EnhancedStore) -> None:
    assert named.names("proj") == ["projects/Apollo"]
    assert named.names("APO") == ["Apollo 13", "projects/Apollo"]
    assert named.names("", limit=2) == ["Apollo 13", "Résumé"]
    assert named.names("%") == []


# -- one memory


def test_a_memory_is_read_with_everything_that_is_known_of_it(
    plain_store: EnhancedStore, write: Write
) -> None:
    write(
        "projects/Apollo.md",
        "---\ntitle: Apollo\ndescription: To the moon\ntype: project\ncreated: 2026-01-05\n"
        "tags: [space, status/active]\naliases: [Moon]\n---\n\n# Plan\n\nWith [[Ada]] and [[Nobody]].\n\n"
        "## Next\n\nGo. ^go\n",
    )
    write("people/Ada.md", "On [[Apollo]], [[Moon]] and [[Apollo#Plan]].")
    write("other.md", "![[Apollo]]")
    plain_store.sync()
    memory = plain_store.read("Apollo")
    assert (memory.title, memory.description, memory.type) == ("Apollo", "To the moon", "project")
    assert memory.created == "2026-01-05T00:00:00"
    assert memory.tags == ("space", "status/active")
    assert memory.tag_map == {"space": True, "status": "active"}
    assert memory.aliases == ("Moon",)
    assert memory.content.startswith("# Plan\n")
    assert memory.text.split("\n")[memory.content_line - 1] == "# Plan"
    assert [(link.target, link.resolved, link.kind) for link in memory.links] == [
        ("people/Ada", True, "wiki"),
        ("Nobody", False, "wiki"),
    ]
    assert memory.backlinks == ("other", "people/Ada")
    assert memory.headings == ((1, "Plan", 10), (2, "Next", 14))
    assert memory.tokens > 0
    assert memory.problem is None


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("Plan", "# Plan\n\nAll.\n\n## Next\n\nGo. ^go\n\n"),
        ("next", "## Next\n\nGo. ^go\n\n"),
        ("Plan#Next", "## Next\n\nGo. ^go\n\n"),
        ("^go", "Go. ^go"),
        ("Late", "# Late\n\nx\n"),
    ],
)
def test_a_section_can_be_read_alone(
    plain_store: EnhancedStore, write: Write, section: str, text: str
) -> None:
    write("a.md", "# Plan\n\nAll.\n\n## Next\n\nGo. ^go\n\n# Late\n\nx\n")
    memory = plain_store.read("a", section=section)
    assert memory.content.strip() == text.strip()
    assert memory.text.split("\n")[memory.content_line - 1] == text.split("\n")[0]


# -- what changed a moment ago


def test_an_edit_by_hand_is_seen_by_the_next_answer_that_concerns_it(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("a.md", "---\ntags: [x]\n---\nThe plum tree.")
    plain_store.sync()
    file = write("a.md", "---\ntags: [y]\n---\nThe plum tree, and a quince.")
    hit = plain_store.search("plum", mode="text").hits[0]
    assert (hit.tags, hit.snippet) == (("y",), "The plum tree, and a quince.")
    assert found(plain_store, "quince") == ["a"]
    file.unlink()
    assert found(plain_store, "plum") == []
    write("a.md", "A pear.")
    assert plain_store.read("a").content == "A pear."
    assert found(plain_store, "pear") == ["a"]


# -- questions


def test_an_answer_says_whether_it_is_whole(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    with EnhancedStore(vault, Settings()) as store:
        first = store.search("plum", mode="text")
        assert (len(first.hits), first.index.state, first.index.pending) == (1, "partial", 1)
        assert first.index.reason
        store.sync(embed=False)
        second = store.search("plum", mode="text")
        assert (len(second.hits), second.index.state, second.index.pending) == (1, "partial", 1)
        store.sync()
        assert store.search("plum").index.as_dict() == {
            "state": "ready",
            "notes": 1,
            "pending": 0,
            "reason": "",
        }
        assert store.search("nothing of the kind", mode="text").index.state == "ready"
    with EnhancedStore(vault, Settings()) as again:
        assert again.state().state == "ready"


# -- backlinks


def test_backlinks_show_the_line_they_stand_in(plain_store: EnhancedStore, write: Write) -> None:
    write("Ada.md", "x")
    write("a.md", "---\nboss: '[[Ada]]'\n---\n\none\r\n  two [[Ada|her]]  here\n")
    write("b.md", "[md](Ada.md)\u2028still line one\n\n![[Ada]]\n")
    write("c.md", "`[[Ada]]` is no link")
    plain_store.sync()
    links = plain_store.backlinks("Ada", limit=10, kinds=("link",))
    assert [(link.name, link.form, link.line, link.snippet) for link in links] == [
        ("a", "property", 2, "boss: 'Ada'"),
        ("b", "markdown", 1, "md still line one"),
    ]
    assert [link.also for link in links] == [
        (Mention("wiki", 6, "two her here"),),
        (Mention("embed", 3, "Ada"),),
    ]
    assert [link.name for link in plain_store.backlinks("Ada", limit=1)] == ["a"]
    with pytest.raises(Invalid):
        plain_store.backlinks("Ada", kinds=("friends",))


def test_near_in_meaning_comes_after_links_and_a_question_puts_them_in_order(
    store: EnhancedStore, write: Write
) -> None:
    write("dogs.md", "The puppy and the dog were taken to the veterinarian.")
    write("cats.md", "The kitten and the cat were taken to the veterinarian by the dog.")
    write("tax.md", "Income tax. See [[dogs]].")
    write("sea.md", "Tides and lighthouses.")
    store.sync()
    both = store.backlinks("dogs")
    assert [(link.name, link.kind) for link in both][:2] == [("tax", "link"), ("cats", "semantic")]
    assert "sea" not in {link.name for link in both}
    assert store.related("dogs") == ("cats",)
    by_question = store.backlinks("dogs", query="kitten")
    assert by_question[0].name == "cats"
    assert by_question[0].score > 0


# -- too large, read-only, gone


def test_a_read_only_store_answers_and_leaves_no_trace(vault: Path, write: Write) -> None:
    write("a.md", "plum [[b]]")
    write("b.md", "---\ntags: [x]\n---\npear")
    before = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in vault.rglob("*")
        if path.is_file()
    }
    with EnhancedStore(vault, PLAIN, read_only=True) as store:
        store.sync()
        assert found(store, "plum") == ["a"]
        assert store.read("b").backlinks == ("a",)
        assert store.list(filter=Filter.of(tags=["x"])).total == 1
        for change in (
            lambda: store.create("c", "x"),
            lambda: store.update("a", append="x"),
            lambda: store.change_tags("a", {"x": True}),
            lambda: store.move("a", "c"),
            lambda: store.delete("a"),
            lambda: store.undo("a"),
            lambda: store.write_text("a", "x", if_sha256="0" * 64),
        ):
            with pytest.raises(ReadOnly):
                change()
        write("c.md", "quince")
        store.sync()
        assert found(store, "quince") == ["c"]
        (vault / "c.md").unlink()
        assert vault not in store._parts.index.path.parents
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in vault.rglob("*")
        if path.is_file()
    } == before


def test_a_vault_that_went_away_is_not_an_empty_one(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    """The disk was unplugged: nothing is made in its place, and nobody is told that there are no notes."""
    write("a.md", "plum")
    plain_store.sync()
    vault.rename(vault.parent / "unplugged")
    for asked in (
        lambda: plain_store.search("plum", mode="text"),
        lambda: plain_store.list(),
        lambda: plain_store.sync(),
        lambda: plain_store.state(),
    ):
        try:
            answer = asked()
        except SimplememError:
            continue
        state = getattr(answer, "index", answer)
        assert getattr(state, "state", "") != "ready"
    with pytest.raises(SimplememError):
        plain_store.create("b", "pear")
    assert not vault.exists()
    (vault.parent / "unplugged").rename(vault)
    plain_store.sync()
    assert found(plain_store, "plum") == ["a"]
