"""What a model says of a memory beside its text, wherever it says it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

BLOCK = "---\ntitle: Apollo\ntags: [moon, todo]\nbudget: 12\n---\n\nThe ship.\n"


def test_a_yaml_block_at_the_start_of_the_content_is_frontmatter(ask: Any, vault: Path) -> None:
    made = ask(
        "create_memory", name="a", content=BLOCK, metadata={"tags": ["Ann Lee"], "title": "Mine"}
    )
    assert (
        "the YAML block at the start of the content was taken as metadata: title, tags, budget"
        in made.text
    )
    assert (
        "the tag 'Ann Lee' was written as Ann-Lee, because a tag has no spaces"
        in made.data["warnings"]
    )
    text = (vault / "a.md").read_text()
    assert text.count("---\n") == 2 and text.endswith("---\n\nThe ship.\n")
    memory = ask("read_memory", name="a").data
    assert (memory["title"], set(memory["tags"])) == ("Mine", {"moon", "todo", "Ann-Lee"})
    assert memory["frontmatter"]["budget"] == 12
    changed = ask("update_memory", name="a", content="---\nbudget: 13\n---\nThe other ship.")
    assert "taken as metadata: budget" in changed.text
    text = (vault / "a.md").read_text()
    assert (
        text.count("---\n") == 2
        and "budget: 13" in text
        and "moon" in text
        and "The other ship." in text
    )


def test_the_original_takes_such_a_block_too(ask_original: Any, vault: Path) -> None:
    said = "---\ntitle: A\ndescription: d\ntags: {x: y}\n---\nText."
    for tool in ("create_memory", "update_memory"):
        assert (
            "taken as metadata: title, description, tags"
            in ask_original(tool, name="a", content=said, metadata={}).text
        )
        assert (vault / "a.md").read_text().count("---\n") == 2


def test_a_block_that_cannot_be_read_is_refused_and_a_rule_stays_text(
    ask: Any, vault: Path
) -> None:
    refused = ask("create_memory", name="a", content="---\ntitle: [x\n---\nText.")
    assert refused.code == "invalid" and "YAML block" in refused.text
    for content in ("---\n\nText between rules.\n\n---\n", "Text.\n\n---\ntitle: x\n---\n"):
        assert not ask("create_memory", name=f"b{len(content)}", content=content).failed
        assert (vault / f"b{len(content)}.md").read_text().endswith(content)


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        (["Ann Lee"], "the tag 'Ann Lee' was written as Ann-Lee, because a tag has no spaces"),
        (
            {"by": "Ann Lee"},
            "the tag 'by/Ann Lee' was written as by/Ann-Lee, because a tag has no spaces",
        ),
    ],
)
def test_a_tag_that_cannot_be_one_says_what_became_of_it_and_the_same_filter_finds_it(
    ask: Any, tags: Any, said: str
) -> None:
    assert (
        said
        in ask("create_memory", name="a", content="x", metadata={"tags": tags}).data["warnings"]
    )
    ask("create_memory", name="b", content="x")
    for tool, more in (
        ("list_memories", {}),
        ("search_memories", {"query": ""}),
        ("search_memories", {"query": "x"}),
    ):
        found = ask(tool, tags=tags, **more).data
        assert [each["name"] for each in found.get("items") or found["hits"]] == ["a"]
    key = "Ann Lee" if isinstance(tags, list) else "by=Ann Lee"
    assert [each["name"] for each in ask("list_memories", tag=key).data["items"]] == ["a"]
    assert len(ask("search_memories", query=f'tag:"{key}"').data["hits"]) == 1
    assert said in ask("change_tag", name="b", tags=tags).text
    assert said in ask("update_memory", name="b", metadata={"tags": {"x": None, **_map(tags)}}).text


def _map(tags: Any) -> Any:
    return tags if isinstance(tags, dict) else dict.fromkeys(tags, True)


def test_a_tag_that_is_false_does_not_vanish(ask: Any, vault: Path) -> None:
    made = ask("create_memory", name="a", content="x", tags={"flag": False, "todo": True})
    assert (
        "`flag: false` was stored, which means that the note does not have the tag flag"
        in made.text
    )
    assert ask("read_memory", name="a").data["frontmatter"]["flag"] is False
    assert "tags:\n  - todo\n" in (vault / "a.md").read_text()
    assert "flag: false" in ask("update_memory", name="a", metadata={"tags": {"flag": False}}).text


def test_the_original_shows_tags_as_they_are(ask_original: Any, write: Any) -> None:
    write("list.md", "---\ntags: [area/x, area/y]\n---\nlantern")
    write("map.md", "---\ntags: {a: x/y, Ann Lee: true, flag: false}\n---\nlantern #more")
    ask_original.in_step()
    shown = {
        "list": "**Tags:** area/x, area/y\n",
        "map": "**Tags:** a: x/y, Ann Lee, flag: false, more\n",
    }
    for name, tags in shown.items():
        assert tags in ask_original("read_memory", name=name).text
        assert tags in ask_original("list_memories").text
        assert tags in ask_original("search_memories", query="lantern").text
    assert (
        len(
            re.findall(
                r"^## ", ask_original("search_memories", tags=["Ann Lee"]).text, re.MULTILINE
            )
        )
        == 1
    )


TAGGED_IN_TEXT = (
    "---\ntags: [todo]\n---\n# Calls\n\nCall Bob #todo today.\n\n"
    "`#todo` in code is no tag. #status/open\n\nAnd Ida #Todo.\n"
)


def test_a_tag_in_the_text_that_is_to_be_removed_is_said_to_stay_and_on_which_lines(
    ask: Any, write: Any
) -> None:
    file = write("calls.md", TAGGED_IN_TEXT)
    left = (
        "the tag #todo stays, because it is in the text (line 6); edit the text to remove it there"
    )
    other = (
        "the tag #Todo stays, because it is in the text (line 10); edit the text to remove it there"
    )

    write("list.md", TAGGED_IN_TEXT.replace("---\ntags: [todo]\n---\n", ""))
    unchanged = ask("change_tag", name="list", tags={"todo": None})
    assert unchanged.text.startswith("No tag of list was changed.")
    assert unchanged.data["changed"] is False
    assert [each.replace("(line 3)", "(line 6)") for each in unchanged.data["warnings"][:1]] == [
        left
    ]

    changed = ask("change_tag", name="calls", tags={"todo": None})
    text = file.read_text()
    assert changed.data["warnings"] == [
        left.replace("line 6", f"line {_line_of(text, 'Bob')}"),
        other.replace("line 10", f"line {_line_of(text, 'Ida')}"),
    ]
    assert "Call Bob #todo today." in text


def _line_of(text: str, word: str) -> int:
    return text[: text.index(word)].count("\n") + 1


def test_another_value_of_a_tag_that_is_in_the_text_is_said_to_stand_beside_it(
    ask: Any, write: Any
) -> None:
    file = write("calls.md", TAGGED_IN_TEXT)
    [warning] = ask("change_tag", name="calls", tags={"status": "done"}).data["warnings"]
    line = _line_of(file.read_text(), "#status/open")
    assert (
        warning
        == f"the tag #status/open stays, because it is in the text (line {line}); edit the text to remove it there"
    )
    assert (
        "warnings"
        not in ask("change_tag", name="calls", tags={"status": "open", "todo": True}).data
    )


def test_metadata_that_removes_a_tag_in_the_text_says_so_too(ask: Any, write: Any) -> None:
    write("calls.md", TAGGED_IN_TEXT)
    warnings = ask("update_memory", name="calls", metadata={"tags": {"todo": None}}).data[
        "warnings"
    ]
    assert len(warnings) == 2
    assert all("stays, because it is in the text" in warning for warning in warnings)


def test_the_original_says_of_a_tag_in_the_text_that_it_is_still_there(
    ask_original: Any, write: Any
) -> None:
    write("calls.md", TAGGED_IN_TEXT)
    text = ask_original("change_tag", name="calls", tags={"todo": None}).text
    assert "- todo: still there, in the text" in text
    assert "the tag #todo stays, because it is in the text (line" in text
