"""doctor: what it prints and how it ends, --only, --strict, and --fix with its diff, its question and its undo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem.store.doctor.examine import CHECKS

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


@pytest.fixture
def mendable(vault: Path) -> Path:
    """A vault with two files that can be mended and one that a person must mend."""
    (vault / "people/Ada.md").write_text("Ada flies balloons.\n")
    (vault / "a.md").write_text("one\n\n[[team/Ada]]\n")
    (vault / "b.md").write_text("---\nx: 1\nx: 1\n---\n")
    (vault / "c.md").write_text("---\nx: [\n---\n")
    return vault


def files(vault: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in vault.rglob("*.md") if ".simplemem" not in path.parts}


def test_a_vault_in_order_ends_with_0(run: Run, vault: Path) -> None:
    (vault / "people/Ada.md").write_text("Ada flies balloons.\n")
    ran = run("doctor")
    assert (ran.code, ran.out) == (0, "All is well.\n")
    answer = run("doctor", "--json").json
    assert (answer["ok"], answer["findings"]) == (True, [])
    assert answer["stands_on"]["sqlite_of"].startswith("apsw ") and answer["stands_on"]["free_bytes"] > 0
    assert run("doctor", "--strict").code == 0


def test_a_note_ends_with_0_unless_one_is_strict(run: Run) -> None:
    ran = run("doctor")
    assert ran.code == 0 and "note: people/Ada.md:8: [[nowhere]] leads nowhere" in ran.out
    assert run("doctor", "--strict").code == 1
    assert run("doctor", "--json", "--strict").json["ok"] is False


def test_a_warning_ends_with_1_and_says_what_can_be_mended(run: Run, mendable: Path) -> None:
    ran = run("doctor")
    assert ran.code == 1
    assert "warning: a.md:3: [[team/Ada]] leads nowhere: the only file of that name is people/Ada" in ran.out
    assert "--fix would lead [[team/Ada]] to people/Ada" in ran.out
    assert ran.out.endswith("0 errors, 3 warnings, 0 notes; `simplemem doctor --fix` can mend 2.\n")
    found = {finding["path"]: finding for finding in run("doctor", "--json").json["findings"]}
    assert (found["a.md"]["check"], found["a.md"]["line"], found["a.md"]["candidates"]) == ("links", 3, ["people/Ada"])


def test_only_some_checks_are_run_when_only_they_are_named(run: Run, mendable: Path) -> None:
    asked = run("doctor", "--json", "--only", "links").json["findings"]
    assert {finding["check"] for finding in asked} == {"links"}
    both = run("doctor", "--json", "--only", "links, headers", "--only", "names").json["findings"]
    assert {finding["check"] for finding in both} == {"links", "headers"}
    assert run("doctor", "--only", "attachments,names").code == 0


@pytest.mark.parametrize("wrong", [("--only", "link"), ("--yes",), ("--dry-run",), ("--nonsense",)])
def test_what_makes_no_sense_ends_with_2(run: Run, wrong: tuple[str, ...]) -> None:
    assert run("doctor", *wrong).code == 2


def test_a_check_that_is_none_is_told_with_its_neighbour(run: Run) -> None:
    assert "Did you mean links?" in " ".join(run("doctor", "--only", "link").err.replace("│", " ").split())


def test_without_a_terminal_nothing_is_mended_unless_that_is_agreed_to(run: Run, mendable: Path) -> None:
    before = files(mendable)
    ran = run("doctor", "--fix")
    assert ran.code == 1 and "-[[team/Ada]]\n+[[people/Ada]]\n" in ran.out
    assert "this would change 2 files in one step" in ran.err and "--yes" in ran.err
    answer = run("doctor", "--fix", "--json").json
    assert answer["error"]["code"] == "invalid"
    assert files(mendable) == before


def test_a_dry_run_shows_the_diff_and_does_nothing(run: Run, mendable: Path) -> None:
    before = files(mendable)
    ran = run("doctor", "--fix", "--dry-run")
    assert ran.code == 1 and "--- b.md\n+++ b.md\n@@ -1,4 +1,3 @@\n ---\n x: 1\n-x: 1\n ---\n" in ran.out
    fix = run("doctor", "--fix", "--dry-run", "--json").json["fix"]
    assert [(change["path"], fix["done"]) for change in fix["changes"]] == [("a.md", False), ("b.md", False)]
    assert files(mendable) == before


def test_what_was_mended_is_one_change_that_one_undo_takes_back(run: Run, mendable: Path) -> None:
    before = files(mendable)
    ran = run("doctor", "--fix", "--yes")
    assert "Mended 2 files in one step; undo with: simplemem undo v000001" in ran.out
    assert ran.code == 1 and "warning: c.md:3:" in ran.out and "a.md:3" not in ran.out  # what is left
    assert files(mendable)["a.md"] == b"one\n\n[[people/Ada]]\n"
    versions = run("history", "--json").json["versions"]
    assert {(version["tool"], version["who"]) for version in versions} == {("doctor", "command line")}
    assert {version["reason"] for version in versions} == {"mended: headers 1, links 1"}
    run("undo", "v000001")
    assert files(mendable) == before


def test_mending_ends_with_0_when_nothing_is_left(run: Run, mendable: Path) -> None:
    (mendable / "c.md").unlink()
    done = run("doctor", "--fix", "--yes", "--json")
    assert done.code == 0 and done.json["ok"] and done.json["findings"] == []
    assert done.json["fix"]["done"] and done.json["fix"]["changed"] == ["a.md", "b.md"]
    ran = run("doctor", "--fix")
    assert (ran.code, ran.out) == (0, "All is well.\n")


def test_what_only_a_person_can_mend_is_said_to_be_so(run: Run, mendable: Path) -> None:
    ran = run("doctor", "--fix", "--only", "notes,headers", "--yes")
    assert "Mended 1 file" in ran.out
    ran = run("doctor", "--fix")
    assert ran.code == 1 and "this would change 1 file" in ran.err
    run("doctor", "--fix", "--yes")
    assert run("doctor", "--fix").out.startswith("Nothing can be mended without a person.\nwarning: c.md:3:")


def test_only_what_was_asked_for_is_mended(run: Run, mendable: Path) -> None:
    before = files(mendable)
    run("doctor", "--fix", "--yes", "--only", "headers")
    assert files(mendable)["b.md"] == b"---\nx: 1\n---\n"
    assert files(mendable)["a.md"] == before["a.md"]


def test_an_index_that_is_wrong_is_an_error_and_is_made_anew(run: Run, vault: Path) -> None:
    import apsw

    run("index")
    with apsw.Connection(str(vault / ".simplemem" / "index.db")) as db:
        db.execute("UPDATE notes SET title = 'Wrong' WHERE path = 'projects/apollo.md'")
    ran = run("doctor")
    assert ran.code == 1 and "error: projects/apollo.md" in ran.out
    ran = run("doctor", "--fix", "--yes")
    assert ran.code == 0 and "The index is made anew." in ran.out
    assert run("doctor").code == 0


def test_of_many_notes_of_one_kind_the_first_are_named(run: Run, vault: Path) -> None:
    for number in range(25):
        (vault / f"photo{number:02}.png").write_bytes(b"\x89PNG")
    shown = run("doctor").out
    assert shown.count("[attachments]") == 20
    assert "5 more notes of this kind: `simplemem doctor --only attachments` names them all." in shown
    assert run("doctor", "--only", "attachments").out.count("[attachments]") == 25
    assert len(run("doctor", "--json").json["findings"]) == 26


def test_a_vault_for_reading_only_is_looked_at_and_not_mended(
    run: Run, mendable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(mendable)
    monkeypatch.setenv("SIMPLEMEM_READ_ONLY", "true")
    assert run("doctor").out.endswith("can mend 2.\n")
    assert run("doctor", "--fix", "--dry-run").code == 1
    ran = run("doctor", "--fix", "--yes")
    assert ran.code == 1 and "for reading only" in ran.err
    assert files(mendable) == before


def test_the_help_and_the_page_name_every_check(run: Run) -> None:
    page = (Path(__file__).parents[2] / "docs/doctor.md").read_text(encoding="utf-8")
    named = " ".join(run("doctor", "--help", vault=None).out.replace("│", " ").split()).partition("The checks: ")[2]
    assert named.partition(".")[0].split(", ") == list(CHECKS)
    assert [row.split("`")[1] for row in page.split("\n") if row.startswith("| `")] == list(CHECKS)


def test_what_a_note_says_steers_no_terminal(run: Run, vault: Path) -> None:
    (vault / "a.md").write_text("[[no\x1b[31mwhere]]\n\n[[team/Ada]] \x1b]0;title\x07\n")
    assert "\x1b" not in run("doctor").out + run("doctor", "--fix", "--dry-run").out
