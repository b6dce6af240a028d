"""The log without what is hidden: learned bit by bit it is the same as read at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from simplemem.vault.access import Access
from simplemem.vault.disk import Backing
from simplemem.vault.log import Log
from simplemem.vault.paths import Beneath
from simplemem.vault.seen_log import SeenLog

PATHS = ("a.md", "b.md", "Private/a.md", "Private/b.md")
RULES = Access(hidden=("Private/",))

STEPS = st.lists(
    st.tuples(st.sampled_from(("create", "update", "delete", "move")), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    max_size=12,
)


def seen_by(log: SeenLog) -> list[str]:
    return [version.id for version in log.backwards()]


def append(whole: Log, op: str, path: str, new_path: str) -> None:
    """Do something to a note, in the log and in the vault."""
    root = Path(whole.root)
    there = root / (new_path if op == "move" else path)
    there.parent.mkdir(exist_ok=True)
    if op == "move":
        (root / path).unlink(missing_ok=True)
    there.unlink(missing_ok=True) if op == "delete" else there.write_text("text")
    number = whole.next_number()
    text = f"{number:064x}"
    step: dict[str, Any] = {"path": path, "op": op, "before": text, "after": text}
    step |= {"create": {"before": None}, "delete": {"after": None}, "move": {"new_path": new_path}}.get(op, {})
    with Beneath(whole.root, by_path=whole.by_path) as here:
        whole.append(here, whole.stamp([step], first=number, tool="", who="", reason=""))


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_what_is_learned_as_the_log_grows_is_what_a_first_look_shows(tmp_path_factory: Any, steps: Any) -> None:
    whole = Log(str(tmp_path_factory.mktemp("vault")), by_path=Backing().by_path)
    learning = SeenLog(whole, RULES)
    for op, path, new_path in steps:
        append(whole, op, path, new_path)
        fresh = SeenLog(whole, RULES)
        assert seen_by(learning) == seen_by(fresh)
        shown = [version for version in learning.backwards() if version.op != "recovered"]
        assert not any(RULES.hides(name) for v in shown for name in (v.path, v.new_path or v.path))
        hashes = {text for v in shown for text in (v.before, v.after) if text is not None}
        assert {text for n in range(1, 13) if learning.speaks_of(text := f"{n:064x}")} == hashes


def test_a_note_hides_its_past_until_it_comes_out_again(tmp_path: Path) -> None:
    whole = Log(str(tmp_path), by_path=Backing().by_path)
    log = SeenLog(whole, RULES)
    append(whole, "create", "a.md", "")
    append(whole, "move", "a.md", "b.md")
    assert len(seen_by(log)) == 2
    append(whole, "move", "b.md", "Private/a.md")
    assert seen_by(log) == []
    append(whole, "create", "a.md", "")  # another note of that name
    assert seen_by(log) == ["v000004"]
    append(whole, "move", "Private/a.md", "b.md")
    assert seen_by(log) == ["v000004", "v000002", "v000001"]
    assert log.next_number() == 6


def test_what_somebody_else_took_away_has_no_past_while_it_is_gone(tmp_path: Path) -> None:
    whole = Log(str(tmp_path), by_path=Backing().by_path)
    log = SeenLog(whole, RULES)
    for op, path, new in (
        ("create", "b.md", ""),
        ("move", "b.md", "a.md"),
        ("create", "c.md", ""),
        ("delete", "c.md", ""),
    ):
        append(whole, op, path, new)
    assert seen_by(log) == ["v000004", "v000003", "v000002", "v000001"]
    (tmp_path / "Private").mkdir()
    (tmp_path / "a.md").rename(tmp_path / "Private" / "a.md")
    assert seen_by(log) == ["v000004", "v000003"], "what we deleted went nowhere else"
    assert not log.speaks_of(f"{2:064x}") and log.speaks_of(f"{3:064x}")
    assert log.group("v000002") == [] and log.closed({"v000002"}) == {"v000002"}
    (tmp_path / "Private" / "a.md").rename(tmp_path / "a.md")
    assert len(seen_by(log)) == 4


def test_a_new_note_under_the_name_of_one_that_was_taken_away_does_not_get_its_past(tmp_path: Path) -> None:
    whole = Log(str(tmp_path), by_path=Backing().by_path)
    log = SeenLog(whole, RULES)
    append(whole, "create", "a.md", "")
    append(whole, "create", "b.md", "")
    (tmp_path / "a.md").unlink()
    (tmp_path / "b.md").unlink()
    append(whole, "create", "a.md", "")
    append(whole, "move", "a.md", "b.md")
    assert seen_by(log) == seen_by(SeenLog(whole, RULES)) == ["v000004", "v000003"]


def test_a_log_that_begins_anew_is_read_anew(tmp_path: Path) -> None:
    whole = Log(str(tmp_path), by_path=Backing().by_path)
    log = SeenLog(whole, RULES)
    for name in ("a.md", "b.md", "a2.md"):
        append(whole, "create", name, "")
    assert len(seen_by(log)) == 3
    (tmp_path / ".simplemem" / "history" / "log.jsonl").unlink()
    append(whole, "create", "Private/a.md", "")
    assert seen_by(log) == []
