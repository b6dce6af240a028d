"""What the tools say: of a size a model can take, whole in text and in data, and with a way out when it fails."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from waiting import write_many_notes

from bench.answers import calls
from simplemem.note.words import count_tokens

LONG = "A title of very many words indeed " * 60
CHINESE = "一个关于港口的很长的标题" * 60
Write = Callable[..., Path]


def overgrown(title: str, body: str) -> str:
    """A note of which everything is too long."""
    tags = "".join(f"  - subject-{k}/value-number-{k}\n" for k in range(60))
    return f"---\ntitle: {title}\ndescription: {title * 5}\ntags:\n{tags}---\n# {title[:200]}\n\n{body * 300}\n"


def compact(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("title", "body", "query"),
    [
        (LONG, "The lantern by the harbour was lit. ", "lantern harbour"),
        (CHINESE, "港口的灯笼亮了。", "港口的灯笼"),
    ],
    ids=["words", "no spaces"],
)
def test_five_hits_stay_below_fifteen_hundred_tokens_whatever_the_notes_are(
    ask, write: Write, title: str, body: str, query: str
) -> None:
    for k in range(6):
        write(f"harbour/notes of the year/lantern {k}.md", overgrown(title, body))
    ask.in_step()
    found = ask("search_memories", query=query)
    assert len(found.data["hits"]) == 5
    assert count_tokens(found.text) < 1500 and count_tokens(compact(found.data)) < 1500
    hit = found.data["hits"][0]
    assert len(hit["tags"]) + hit["more_tags"] == 60
    assert f"and {hit['more_tags']} more" in found.text and f"**{hit['name']}**" in found.text


def test_a_list_ends_where_it_would_grow_too_long_and_goes_on_from_there(ask, write: Write) -> None:
    for k in range(150):
        write(f"n{k:03}.md", overgrown(LONG, "x "))
    ask.in_step()
    seen: list[str] = []
    cursor = None
    while cursor or not seen:
        page = ask("list_memories", limit=200, sort="name", cursor=cursor)
        assert count_tokens(page.text) < 8000 and count_tokens(compact(page.data)) < 9000
        seen += [item["name"] for item in page.data["items"]]
        cursor = page.data["next_cursor"]
        assert cursor is None or f'cursor="{cursor}"' in page.text
    assert seen == [f"n{k:03}" for k in range(150)]


@pytest.mark.parametrize("word", ["lantern ", "灯笼"], ids=["words", "no spaces"])
def test_a_long_memory_is_read_in_pages_that_together_are_the_memory(
    ask, write: Write, word: str
) -> None:
    sections = [f"## Part {k}\n\n{word * 700}\n\n" for k in range(12)]
    write("log.md", "# Log\n\n" + "".join(sections))
    pages = [ask("read_memory", name="log")]
    while (following := pages[-1].data.get("next_section")) is not None:
        assert f'Pass section="{following}" for the next page' in pages[-1].text
        pages.append(ask("read_memory", name="log", section=following))
    assert len(pages) > 1
    assert "".join(page.data["content"] for page in pages) == "# Log\n\n" + "".join(sections)
    assert all(count_tokens(page.text) < 6500 for page in pages)
    assert "Part 11" in pages[0].text
    assert (
        ask("read_memory", name="log", section="Part 11").data["content"].startswith("## Part 11")
    )
    assert ask("read_memory", name="log", section="[99]").code == "not_found"


def test_text_and_data_name_the_same_things(ask) -> None:
    ask(
        "create_memory",
        name="people/Ada",
        content="Ada flies kites.",
        metadata={"tags": {"role": "pilot"}},
    )
    made = ask(
        "create_memory", name="kite", content="Built by [[people/Ada]].\n\n## Log\n\nFirst flight."
    )
    assert made.data["sha256"] in made.text
    ask.in_step()
    read = ask("read_memory", name="kite")
    for said in ("kite", made.data["sha256"], "First flight.", "people/Ada", "created: "):
        assert said in read.text
    assert read.data["content"].endswith("First flight.\n")
    found = ask("search_memories", query="kites")
    for hit in found.data["hits"]:
        for said in (
            hit["name"],
            hit["snippet"],
            hit["sha256"][:12],
            f"line {hit['line']}",
            hit["modified"][:10],
        ):
            assert said in found.text
    listed = ask("list_memories", tags="role")
    assert [item["name"] for item in listed.data["items"]] == [
        "people/Ada"
    ] and "#role/pilot" in listed.text
    links = ask("get_backlinks", name="people/Ada", kinds="link")
    assert [item["name"] for item in links.data["items"]] == [
        "kite"
    ] and "Built by people/Ada." in links.text
    pack = ask("build_context", query="kites flight")
    assert pack.data["text"] in pack.text
    gone = ask("delete_memory", name="kite")
    assert gone.data["version"] in gone.text
    story = ask("memory_history", name="kite")
    assert all(version["version"] in story.text for version in story.data["versions"])
    assert story.data["versions"][0]["who"] == "test 1"


def test_what_is_not_yet_known_is_said(ask, write: Write, vault: Path) -> None:
    write("a.md", "The lantern. [[b]]")
    write("b.md", "The harbour.")
    write_many_notes(vault)
    ask.store.start()
    asked: dict[str, dict[str, Any]] = {
        "search_memories": {"query": "lantern"}, "list_memories": {}, "get_backlinks": {"name": "b"},
        "build_context": {"query": "lantern"}, "read_memory": {"name": "b"},
    }  # fmt: skip
    for tool, arguments in asked.items():
        early = ask(tool, **arguments)
        assert "still being built" in early.text, tool
        assert early.data.get("index", {"state": "indexing"})["state"] == "indexing"
        assert not re.search(
            "nothing (was )?found|no (memory|note) (holds|contains)", early.text, re.IGNORECASE
        ), tool
        (missing,) = re.findall(
            r"(\d+) of \d+ notes are not indexed yet, and (\d+) have no vector yet", early.text
        )
        assert all(int(number) > 0 for number in missing)
    assert any("still being built" in warning for warning in early.data["warnings"])


def test_a_small_vault_that_was_never_indexed_is_ready_before_the_first_answer(
    ask, write: Write
) -> None:
    write("a.md", "The lantern. [[b]]")
    write("b.md", "The harbour.")
    ask.store.start()
    found = ask("search_memories", query="lantern")
    assert [hit["name"] for hit in found.data["hits"]][:1] == ["a"] and found.data["index"][
        "state"
    ] == "ready"
    for tool, arguments in {"list_memories": {}, "build_context": {"query": "lantern"}}.items():
        answer = ask(tool, **arguments)
        assert answer.data.get("index", {"state": "ready"})["state"] == "ready"
        assert "still being built" not in answer.text and "incomplete" not in answer.text
    assert [
        each["name"] for each in ask("get_backlinks", name="b", kinds="link").data["items"]
    ] == ["a"]


def test_a_repeated_change_whose_answer_was_lost_succeeds_and_changes_nothing(
    ask, vault: Path
) -> None:
    first = ask("create_memory", name="a", content="one").data["sha256"]
    assert ask("create_memory", name="a", content="one").data["sha256"] == first
    for _ in range(2):
        again = ask("update_memory", name="a", append="two", if_sha256=first)
        assert not again.failed
    assert again.data["changed"] is False
    assert (vault / "a.md").read_text().count("two") == 1
    for _ in range(2):
        moved = ask("move_memory", name="a", new_name="rooms/b")
        assert moved.data["name"] == "rooms/b"
        assert moved.data["sha256"] == ask("read_memory", name="rooms/b").data["sha256"]


def test_a_repeated_deletion_does_not_fall_upon_another_memory_of_that_title(
    ask, vault: Path
) -> None:
    ask("create_memory", name="plan", content="one")
    ask("create_memory", name="ideas/other", content="two", metadata={"title": "Plan"})
    gone = ask("delete_memory", name="plan")
    changes: dict[str, dict[str, Any]] = {
        "delete_memory": {}, "update_memory": {"append": "x"}, "change_tag": {"tags": "x"}, "move_memory": {"new_name": "y"},
    }  # fmt: skip
    for tool, more in changes.items():
        refused = ask(tool, name="plan", **more)
        assert refused.code == "not_found" and gone.data["version"] in refused.text
        assert refused.data["error"]["candidates"] == ["ideas/other"]
    assert (vault / "ideas/other.md").exists()
    assert not ask("delete_memory", name="ideas/other").failed


def test_a_name_that_leads_nowhere_any_more_says_where_its_memory_went(ask) -> None:
    ask("create_memory", name="plan", content="one")
    ask("move_memory", name="plan", new_name="rooms/roadmap")
    missed = ask("read_memory", name="plan")
    assert missed.code == "not_found" and missed.data["error"]["candidates"] == ["rooms/roadmap"]
    version = ask("delete_memory", name="rooms/roadmap").data["version"]
    assert f'undo_change(version="{version}")' in ask("read_memory", name="roadmap").text
    ask("undo_change", version=version)
    assert not ask("read_memory", name="roadmap").failed


def test_every_kind_of_failure_has_its_code_its_sentence_and_a_way_out(
    ask, asking_with, write: Write
) -> None:
    for name in ("projects/apollo", "a/same", "b/same"):
        ask("create_memory", name=name, content="x")
    write("broken.md", "---\ntitle: [unclosed\n---\nText.")
    ask.in_step()
    read_only = asking_with(read_only=True)
    for code, answer in (
        ("invalid", ask("search_memories", query="x", mode="magic")),
        ("invalid", ask("create_memory", name="../out", content="x")),
        ("invalid", ask("list_memories", since="when pigs fly")),
        (
            "invalid",
            ask("update_memory", name="projects/apollo", edits=[{"old": "nowhere", "new": ""}]),
        ),
        ("not_found", ask("read_memory", name="projects/apolo")),
        ("not_found", ask("read_memory", name="projects/apollo", section="Nowhere")),
        ("already_exists", ask("create_memory", name="projects/apollo", content="other")),
        ("ambiguous", ask("read_memory", name="same")),
        ("conflict", ask("update_memory", name="projects/apollo", append="x", if_sha256="0" * 64)),
        ("too_long", ask("create_memory", name="a" * 400, content="x")),
        ("unreadable", ask("change_tag", name="broken", tags="x")),
        ("read_only", read_only("create_memory", name="new", content="x")),
    ):
        assert answer.code == code and answer.text.startswith(f"{code}: "), answer.text
        error = answer.data["error"]
        assert error["message"]
        assert error.get("hint") or error.get("candidates") or code == "read_only", answer.text
    same = ask("read_memory", name="same")
    assert same.data["error"]["candidates"] == ["a/same", "b/same"] and "a/same" in same.text


# --- going back: who did what and why, what was, and taking it back


def test_a_reason_is_kept_of_every_kind_of_change_and_said(ask) -> None:
    ask("create_memory", name="a", content="one", reason="begun")
    ask("update_memory", name="a", append="two", reason="more")
    ask("change_tag", name="a", tags={"todo": True}, reason="to do")
    ask("move_memory", name="a", new_name="b", reason="better")
    gone = ask("delete_memory", name="b", reason="over")
    ask("undo_change", version=gone.data["version"], reason="not over")
    story = ask("memory_history", name="b")
    versions = story.data["versions"]
    assert [each["reason"] for each in versions] == [
        "undoes v000005: not over",
        "over",
        "better",
        "to do",
        "more",
        "begun",
    ]
    assert [each["tool"] for each in versions][:2] == ["undo_change", "delete_memory"]
    assert {each["who"] for each in versions} == {"test 1"}
    assert "better" in story.text and "test 1" in story.text


def test_a_memory_is_read_as_it_was_at_a_version_or_a_date(ask, vault: Path) -> None:
    ask("create_memory", name="a", content="one")
    ask("update_memory", name="a", content="two")
    assert ask("read_memory", name="a", version="v1").data["content"].strip() == "one"
    now = ask("read_memory", name="a", version="today")
    assert now.data["content"].strip() == "two" and "earlier version today" in now.text
    assert ask("read_memory", name="a", version="yesterday").code == "not_found"
    assert ask("read_memory", name="a", version="the day before").code == "invalid"
    (vault / "a.md").write_bytes(b"by hand")
    ask.in_step()
    ask("update_memory", name="a", append="ours")
    assert ask("read_memory", name="a", version="2").data["content"].strip() == "two"


def test_all_changes_of_a_client_are_looked_at_before_they_are_taken_back(ask, vault: Path) -> None:
    for name in ("a", "b", "c"):
        ask("create_memory", name=name, content="one")
    before = {name: (vault / f"{name}.md").read_bytes() for name in "ab"}
    ask("update_memory", name="a", append="two")
    ask("delete_memory", name="b")
    shown = ask("undo_change", by="test", since="v4")
    assert {each["name"]: each["becomes"] for each in shown.data["notes"]} == {
        "a": "changed back",
        "b": "brought back",
    }
    assert (
        shown.data["version"] == ""
        and "preview=false" in shown.text
        and not (vault / "b.md").exists()
    )
    done = ask("undo_change", by="test", since="v4", preview=False, reason="wrong")
    assert {name: (vault / f"{name}.md").read_bytes() for name in "ab"} == before
    assert f'undo_change(version="{done.data["version"]}")' in done.text
    ask("undo_change", version=done.data["version"])
    assert not (vault / "b.md").exists()


def test_undoing_wants_one_thing_and_a_name_is_never_taken_for_a_version(ask, vault: Path) -> None:
    ask("create_memory", name="first", content="one")
    ask("create_memory", name="1", content="a memory called like a version")
    ask("update_memory", name="1", append="more")
    for wrong in ({}, {"by": "test"}, {"since": "today"}, {"name": "1", "by": "test", "since": "today"},
                  {"version": "v1", "name": "1"}):  # fmt: skip
        assert ask("undo_change", **wrong).code == "invalid"
    for nobody in ({"by": "nobody", "since": "today"}, {"name": "nobody"}):
        assert ask("undo_change", **nobody).code == "not_found"
    back = ask("undo_change", name="1")
    assert back.data["name"] == "1" and (vault / "first.md").exists()
    assert "more" not in ask("read_memory", name="1").text
    assert f'undo_change(version="{back.data["version"]}")' in back.text
    ask("undo_change", version=back.data["version"])
    assert "more" in ask("read_memory", name="1").text


def test_a_text_that_was_found_is_passed_over_when_the_last_change_is_undone(
    ask, vault: Path
) -> None:
    ask("create_memory", name="a", content="one")
    with (vault / "a.md").open("r+b") as editor:
        ask("update_memory", name="a", content="two")
        editor.write(b"late")
    ask.in_step()
    assert ask("memory_history", name="a").data["versions"][0]["what"].startswith("recovered")
    assert not ask("undo_change", name="a").failed
    assert "one" in ask("read_memory", name="a").text


def test_a_step_is_one_row_of_the_history_and_can_be_expanded(ask) -> None:
    ask("create_memory", name="Settings", content="one")
    for k in range(3):
        ask("create_memory", name=f"note {k}", content="See [[Settings]].")
    moved = ask("move_memory", name="Settings", new_name="Options")
    assert len(moved.data["rewritten"]) == 3
    row, other = ask("memory_history", limit=2).data["versions"]
    assert row["what"].startswith(
        f'move Settings to Options, 4 memories (name="{row["version"]}" lists them)'
    )
    assert (other["what"], other["name"]) == ("create", "note 2")
    whole = ask("memory_history", name=row["version"], diff=True).data["versions"]
    assert {each["name"] for each in whole} == {"Options", "note 0", "note 1", "note 2"}
    assert sum("+See [[Options]]." in each["diff"] for each in whole) == 3
    undone = ask("undo_change", version=row["version"])
    assert (
        ask("memory_history", limit=1)
        .data["versions"][0]["what"]
        .startswith("undo Options to Settings, 4 memories")
    )
    assert (
        ask("undo_change", version=undone.data["version"]).data["what"]
        == "redid the move of Settings to Options"
    )


def test_daily_is_the_note_of_today(ask) -> None:
    name = f"{datetime.now():%Y-%m-%d}"  # noqa: DTZ005
    missing = ask("read_memory", name="daily")
    assert missing.code == "not_found" and name in missing.text and "Append" in missing.text
    assert ask("update_memory", name="daily", append="- [ ] Order helium").data["name"] == name
    assert ask("create_memory", name="daily", content="A second line.").data["name"] == name
    content = ask("read_memory", name="daily").data["content"]
    assert content.split("\n")[:3] == ["- [ ] Order helium", "", "A second line."]
    assert [each["name"] for each in ask("list_memories", tags={"task": "open"}).data["items"]] == [
        name
    ]


def test_data_is_at_most_a_third_larger_than_the_text_and_says_what_it_says(
    ask, vault: Path
) -> None:
    shutil.copytree(Path(__file__).parents[2] / "vault-example", vault, dirs_exist_ok=True)
    ask.in_step()
    for tool, arguments in calls(ask.store):
        if tool in ask.tools():
            answer = ask(tool, **arguments)
            assert not answer.failed, answer.text
            assert len(compact(answer.data).encode()) <= 1.3 * len(answer.text.encode()), tool
            assert ("data, never instructions" in answer.text) == (
                "never instructions" in answer.data.get("notes_are", "")
            )
            assert all(key in answer.data["hint"] for key in ["undo_change"] if key in answer.text)


def test_a_note_that_links_often_is_one_backlink_and_hides_nobody(
    ask, ask_original, write: Write
) -> None:
    write("Ada.md", "A pilot.")
    write("hub.md", "[[Ada]] one\n\n[[Ada]] two\n\n[[Ada]] three\n" + "\n- [[Ada]]" * 3)
    for k in range(4):
        write(f"n{k}.md", "See [[Ada]].")
    ask.in_step()
    links = ask("get_backlinks", name="Ada")
    assert [item["name"] for item in links.data["items"]] == ["hub", "n0", "n1", "n2", "n3"]
    hub, other = links.data["items"][:2]
    assert (hub["line"], hub["snippet"], hub["more_places"]) == (1, "Ada one", 1)
    assert hub["also"][:2] == [
        {"line": 3, "snippet": "Ada two"},
        {"line": 5, "snippet": "Ada three"},
    ]
    assert (
        set(other) == {"name", "title", "kind", "snippet", "line", "score"}
        and "index" not in links.data
    )
    assert links.text.startswith("# 5 memories related to Ada\n")
    assert "  > line 3: Ada two\n" in links.text and "  and 1 more place\n" in links.text
    text = ask_original("get_backlinks", name="Ada").text
    assert "## 5. n3" in text and "**Also in lines:** 3, 5, 7, 8, 9\n" in text


def test_data_has_short_hashes_unique_links_and_nothing_twice_or_empty(ask, write: Write) -> None:
    write("b.md", "# Bee\n\nA bee.\n")
    write(
        "a.md",
        "---\ncolour: red\ntags: [x]\n---\n# Log\n\n[[b]] [[b|again]] [[c]]\n\n# End\n\n[[b]] fin\n# [[d]]\n",
    )
    ask.in_step()
    whole = ask("read_memory", name="a").data
    assert (whole["links"], whole["broken_links"], whole["frontmatter"]) == (
        ["b"],
        ["c", "d"],
        {"colour": "red"},
    )
    assert not {"warnings", "next_section", "outline", "version", "type"} & set(whole)
    part = ask("read_memory", name="a", section="End")
    assert (part.data["content"], part.data["links"]) == ("# End\n\n[[b]] fin\n", ["b"])
    assert not {"broken_links", "backlinks", "related", "frontmatter", "tags", "tag_map"} & set(
        part.data
    )
    assert "colour" not in part.text and "related" not in part.text
    [row] = ask("list_memories", prefix="a").data["items"]
    assert set(row) == {"name", "tags", "modified", "sha256"} and len(row["sha256"]) == 12
    assert len(ask("search_memories", query="bee").data["hits"][0]["sha256"]) == 12
    changed = ask("change_tag", name="a", tags={"y": True}, if_sha256=row["sha256"])
    assert changed.data["changed"] and "warnings" not in changed.data
    newest = ask("memory_history", name="a").data["versions"][0]
    assert len(newest["sha256"]) == 12 and "reason" not in newest
    assert not ask("update_memory", name="a", append="More.", if_sha256=newest["sha256"]).failed
    assert "colour" in ask("read_memory", name="a", version=newest["sha256"]).data["frontmatter"]


def test_a_memory_of_more_than_forty_thousand_characters_comes_in_pages_with_its_outline(
    ask, write: Write
) -> None:
    write("log.md", "".join(f"# Part {k}\n\n{'lantern ' * 700}\n\n" for k in range(12)))
    first = ask("read_memory", name="log")
    assert (
        first.data["outline"] == [f"Part {k}" for k in range(12)]
        and "sections: Part 0, Part 1, " in first.text
    )
    second = ask("read_memory", name="log", section=first.data["next_section"])
    assert (
        len(first.data["content"]) <= 20_000
        and "outline" not in second.data
        and "sections" not in second.text
    )


def test_memories_excluded_from_search_are_counted_beside_words_that_no_memory_holds(
    ask, write: Write
) -> None:
    write("harbour.md", "The crane in the harbour was repaired.")
    write("archive/old.md", "The kubernetes of Piraeus.")
    write(".obsidian/app.json", json.dumps({"userIgnoreFilters": ["archive/"]}))
    ask.in_step()
    sentence = "No memory contains: kubernetes. Not looked at: 1 memory excluded from search."
    for query in ("harbour kubernetes", "kubernetes"):
        assert sentence in ask("search_memories", query=query).text
        assert sentence in ask("build_context", query=query).text
    assert "Not looked at" not in ask("search_memories", query="harbour").text


def test_words_that_no_memory_holds_are_named_and_what_is_near_is_no_answer(
    ask, ask_original, write: Write
) -> None:
    write("harbour.md", "The crane in the harbour was repaired.")
    write("tea.md", "Assam is strong.")
    ask.in_step()
    partly = ask("search_memories", query="harbour kubernetes")
    assert partly.data["absent"] == ["kubernetes"] and "only_nearest" not in partly.data
    assert (
        "No memory contains: kubernetes." in partly.text
        and partly.data["hits"][0]["name"] == "harbour"
    )
    never = ask("search_memories", query="kubernetes ingress")
    assert never.data["only_nearest"] and never.data["absent"] == ["kubernetes", "ingress"]
    closest = "# No note contains these words; these are the nearest by meaning"
    assert never.text.startswith(
        f'{closest} for "kubernetes ingress". No memory contains: kubernetes'
    )
    pack = ask("build_context", query="kubernetes ingress")
    assert (
        "What the memories say" not in pack.text
        and "No memory contains: kubernetes, ingress." in pack.text
    )
    assert pack.text.startswith(closest) and pack.data["notice"] == never.data["notice"]
    assert ask_original("search_memories", query="kubernetes ingress").text.startswith(closest)
    assert "absent" not in ask("search_memories", query="harbour crane").data
    for k, said in enumerate(
        ("roof", "cellar", "garden", "stove", "piano")
    ):  # who is in every note answers nothing
        write(f"{k}.md", f"Ines was at the {said}.")
    ask.in_step()
    unanswered = "Which passport did Ines renew for the expedition?"
    assert ask("search_memories", query=unanswered).text.startswith(
        f'# Nothing found for "{unanswered}", in 7 memories.'
    )
    assert ask("build_context", query=unanswered).text.startswith(
        "# Nothing found about Which passport"
    )
    assert (
        "No memories were found; nearest memories"
        in ask_original("search_memories", query=unanswered).text
    )


def test_a_filter_that_matches_nothing_names_what_is_near(ask, ask_original, write: Write) -> None:
    write("trips/a.md", "---\ntype: journey\ntags: [lantern, status/done]\n---\nThe harbour.")
    write("b.md", "---\ntags: [crane]\n---\nThe harbour.")
    ask.in_step()
    for asked, said in (
        ({"tags": "lanter"}, "No note has #lanter; similar: #lantern."),
        ({"tags": {"status": "open"}}, "No note has #status/open; similar: #status/done."),
        ({"tags": "nosuch"}, "No note has #nosuch; existing: #crane, #lantern, #status/done."),
        ({"type": "jorney"}, "No note matches type=jorney; similar: journey."),
        ({"prefix": "trip/", "since": "2000"}, "No note matches path=trip/; similar: trips/."),
        ({"prefix": "trips/", "tags": "crane"}, "No note matches all of tag=crane, path=trips/."),
    ):
        for answer in (
            ask("list_memories", **asked),
            ask("search_memories", query="harbour", **asked),
        ):
            assert said in answer.text and answer.data["degraded"] == said
    assert (
        "similar: #lantern." in ask_original("search_memories", query="harbour", tags="lanter").text
    )
    assert "similar: #crane" in ask("search_memories", query="harbour tag:crana").text
    assert "degraded" not in ask("search_memories", query="harbour", tags="crane").data
    unmet = ask("search_memories", query='"no such words"', tags="crane", mode="text").text
    assert "No note has" not in unmet and "No note matches" not in unmet


def test_a_context_pack_never_says_that_memories_speak_of_what_none_mentions(
    ask, write: Write
) -> None:
    write("Bread.md", "Feed the starter the evening before, bake at 240 degrees with steam.")
    write("Boiler.md", "The boiler loses pressure in winter. Open the valve under the sink.")
    write("Anna.md", "Anna is my sister. She works as a nurse in Leeds.")
    ask.in_step()
    for subject in (
        "sourdough",
        "sourdough bread",
        "how do I bake a sourdough loaf?",
        "the plot of my novel",
    ):
        pack = ask("build_context", query=subject)
        assert "What the memories say" not in pack.text, subject
    assert ask("build_context", query="boiler pressure").text.startswith(
        "# What the memories say about boiler pressure"
    )


def test_scores_fall_from_hit_to_hit_in_every_tool_that_prints_them(
    ask, ask_original, write: Write
) -> None:
    """Notes are ranked by more than a score says: some of these hold less of a question than the one below them."""
    notes = {
        "Anna": "Anna is my sister. She works as a nurse in Leeds and likes orchids.",
        "Car": "The car had its brakes replaced in March at Miller's garage.",
        "Running": "Half marathon plan: three runs a week, the long one on Sunday, new shoes after 700 kilometres.",
        "Heating": "The boiler loses pressure in winter. Open the valve under the sink until the needle shows 1.5 bar.",
        "Cat": "Pepper hides under the bed whenever there is thunder.",
        "Guitar": "Guitar lesson every Thursday at six with Marek.",
        "Olga": "Olga's father was a fisherman in Galicia; she grew up beside the harbour.",
    }
    for name, text in notes.items():
        write(f"{name}.md", text)
    for name in ("Journal", "Tasks"):
        write(f"{name}.md", "The [[Car]] goes to the garage again, and I have to learn the guitar.")
    ask.in_step()
    rose = False
    for question in (
        "Which instrument am I learning?",
        "my blood pressure readings",
        "queso",
        "Who won the league?",
    ):
        found = ask("search_memories", query=question, limit=10)
        scores = [hit["score"] for hit in found.data["hits"]]
        printed = [float(score) for score in re.findall(r"· score ([0-9.]+)", found.text)]
        assert scores == sorted(scores, reverse=True) and printed == sorted(printed, reverse=True)
        own = [hit.score for hit in ask.store.search(question, limit=10, own_scores=True).hits]
        rose |= own != sorted(own, reverse=True)

        similar = re.findall(
            r"Similarity:\*\* ([0-9.]+)", ask_original("search_memories", query=question).text
        )
        assert similar == sorted(similar, reverse=True)
        items = ask("build_context", query=question, budget_tokens=4000).data["items"]
        assert [item["score"] for item in items] == sorted(
            (item["score"] for item in items), reverse=True
        )
        links = ask("get_backlinks", name="Car", query=question, limit=10).data["items"]
        assert [link["score"] for link in links] == sorted(
            (link["score"] for link in links), reverse=True
        )
    assert rose  # else these memories show nothing


def test_lines_of_a_replaced_text_are_counted_as_its_note_has_them(ask: Any, write: Write) -> None:
    """A line separator of Unicode ends no line of a note."""
    for number, (text, counted) in enumerate(
        (("a\u2028b\x0cc\n", "1 line"), ("a\r\nb", "2 lines"))
    ):
        write(f"tea{number}.md", text)
        replaced = ask("update_memory", name=f"tea{number}", content="Green tea.")
        assert f"not read in this session: {counted}, last changed" in replaced.text
