"""What a model can do about the past: see who did what and why, read what was, take back what was done."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path


def test_a_reason_is_kept_of_every_kind_of_change_and_said(ask) -> None:
    ask("create_memory", name="a", content="one", reason="begun")
    ask("update_memory", name="a", append="two", reason="more")
    ask("change_tag", name="a", tags={"todo": True}, reason="to do")
    ask("move_memory", name="a", new_name="b", reason="better")
    gone = ask("delete_memory", name="b", reason="over")
    ask("undo_change", version=gone.data["version"], reason="not over")
    story = ask("memory_history", name="b")
    versions = story.data["versions"]
    assert [each["reason"] for each in versions] == ["not over", "over", "better", "to do", "more", "begun"]
    assert [each["tool"] for each in versions][:2] == ["undo_change", "delete_memory"]
    assert {each["who"] for each in versions} == {"test 1"}
    for newer, older in pairwise(versions):
        assert newer["previous_sha256"] == older["sha256"]
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
    assert {each["name"]: each["becomes"] for each in shown.data["notes"]} == {"a": "changed back", "b": "brought back"}
    assert shown.data["version"] == "" and "preview=false" in shown.text and not (vault / "b.md").exists()
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


def test_a_text_that_was_found_is_passed_over_when_the_last_change_is_undone(ask, vault: Path) -> None:
    ask("create_memory", name="a", content="one")
    with (vault / "a.md").open("r+b") as editor:
        ask("update_memory", name="a", content="two")
        editor.write(b"late")
    ask.in_step()
    assert ask("memory_history", name="a").data["versions"][0]["what"].startswith("recovered")
    assert not ask("undo_change", name="a").failed
    assert "one" in ask("read_memory", name="a").text
