"""doctor: what it prints and how it ends, --only, and --fix with its diff, its question and its undo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem.store.doctor import CHECKS
from tests.cli.conftest import notes_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


@pytest.fixture
def fixable(vault: Path) -> Path:
    """A vault with two files that can be fixed and one that a person must fix."""
    (vault / "people/Ada.md").write_text("Ada flies balloons.\n")
    (vault / "a.md").write_text("one\n\n[[team/Ada]]\n")
    (vault / "b.md").write_text("x\n[[team/Ada]]\n")
    (vault / "c.md").write_text("---\nx: [\n---\n")
    return vault


def test_without_warnings_it_ends_with_0(run: Run, vault: Path) -> None:
    ran = run("doctor")
    assert ran.code == 0 and "remark: people/Ada.md:8: unresolved link [[nowhere]]" in ran.out
    (vault / "people/Ada.md").write_text("Ada flies balloons.\n")
    ran = run("doctor")
    assert ran.code == 0 and ran.out.startswith("No problems found.\n")
    answer = run("doctor", "--json").json
    assert (answer["ok"], answer["findings"]) == (True, [])


def test_a_template_with_placeholders_in_its_frontmatter_is_no_problem(
    run: Run, vault: Path
) -> None:
    (vault / "people/Ada.md").write_text("Ada flies balloons.\n")
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "templates.json").write_text('{"folder": "templates"}')
    (vault / ".obsidian" / "app.json").write_text('{"userIgnoreFilters": ["old/"]}')
    for folder in ("templates", "old", "flights"):
        (vault / folder).mkdir()
        (vault / folder / "Flight.md").write_text("---\ndate: {{date}}\n---\nText.\n")
    findings = {
        finding["path"]: finding["message"] for finding in run("doctor", "--json").json["findings"]
    }
    assert "can still be read and found, but not changed" in findings["flights/Flight.md"]
    assert "can still be read, but not changed" in findings["old/Flight.md"]
    assert "templates/Flight.md" not in findings
    problems = run("stats", "--json").json["problems"]
    assert [row["path"] for row in problems] == ["flights/Flight.md", "old/Flight.md"]
    assert "not searched" in run("stats").out and "hidden" not in run("stats").out


def test_it_says_what_the_folder_contains_and_that_only_the_index_can_be_made_again(
    run: Run, vault: Path
) -> None:
    run("new", "kite", "--content", "Fly it.")
    run("rm", "kite")
    folder = {
        file["path"]: file["can_be_rebuilt"] for file in run("doctor", "--json").json["folder"]
    }
    assert folder == {
        ".simplemem/index.db": True,
        ".simplemem/history": False,
        ".simplemem/trash": False,
    }
    index_line, kept_line = run("doctor").out.splitlines()[-2:]
    assert (
        ".simplemem/index.db" in index_line
        and "simplemem index --rebuild" in index_line
        and "history" not in index_line
    )
    assert ".simplemem/history" in kept_line and ".simplemem/trash (deleted notes)" in kept_line
    assert ".simplemem" not in run("doctor", "--only", "links").out

    old_history = run("history", "kite", "--json").json
    (vault / ".simplemem" / "index.db").unlink()
    assert run("index", "--rebuild").code == 0
    assert run("history", "kite", "--json").json == old_history
    assert run("undo", "kite").code == 0 and (vault / "kite.md").exists()


def test_a_warning_ends_with_1_and_says_what_can_be_mended(run: Run, fixable: Path) -> None:
    ran = run("doctor")
    assert ran.code == 1 and "warning: a.md:3: unresolved link [[team/Ada]]" in ran.out
    assert "--fix would point [[team/Ada]] to people/Ada" in ran.out
    assert ran.out.startswith(
        "0 errors, 3 warnings, 0 remarks; `simplemem doctor --fix` can fix 2.\n"
    )
    both = run("doctor", "--json", "--only", "links", "--only", "headers, secrets").json["findings"]
    assert {finding["check"] for finding in both} == {"links", "headers"}
    assert run("doctor", "--only", "link").code == 1


def test_the_sum_comes_first_warnings_before_hints_and_many_alike_are_folded(
    run: Run, fixable: Path
) -> None:
    (fixable / "many.md").write_text("\n".join(f"[[gone {number}]]" for number in range(27)) + "\n")
    first, *rest = run("doctor").out.splitlines()
    assert first.startswith("0 errors, 3 warnings, 27 remarks")
    levels = [line.split(":")[0] for line in rest if line[0] != " "]
    assert levels == ["warning"] * 3 + ["remark"] * 3
    assert rest[-3] == "  and 24 more like these, in 1 note in all: simplemem doctor --only links"
    assert run("doctor", "--only", "links").out.count("unresolved link [[") == 29
    assert len(run("doctor", "--json").json["findings"]) == 30


def test_a_dry_run_shows_the_diff_and_nothing_is_fixed_unasked(run: Run, fixable: Path) -> None:
    old_notes = notes_of(fixable)
    ran = run("doctor", "--fix", "--dry-run")
    assert (
        ran.code == 1
        and "--- b.md\n+++ b.md\n@@ -1,2 +1,2 @@\n x\n-[[team/Ada]]\n+[[people/Ada]]\n" in ran.out
    )
    fix = run("doctor", "--fix", "--dry-run", "--json").json["fix"]
    assert [(change["path"], fix["done"]) for change in fix["changes"]] == [
        ("a.md", False),
        ("b.md", False),
    ]
    ran = run("doctor", "--fix")
    assert (
        ran.code == 1 and "this would change 2 files in one step" in ran.err and "--yes" in ran.err
    )
    assert run("doctor", "--fix", "--json").json["error"]["code"] == "invalid"
    assert notes_of(fixable) == old_notes


def test_what_was_fixed_is_one_change_that_one_undo_takes_back(run: Run, fixable: Path) -> None:
    old_notes = notes_of(fixable)
    ran = run("doctor", "--fix", "--yes")
    assert "Fixed 2 files in one step\n  undo with: simplemem undo v000001\n" in ran.out
    assert (
        ran.code == 1 and "warning: c.md:3:" in ran.out and "a.md:3" not in ran.out
    )  # what is left
    versions = run("history", "--json").json["versions"]
    assert {(version["tool"], version["who"]) for version in versions} == {
        ("doctor", "command line")
    }
    assert run("doctor", "--fix").out.startswith(
        "Nothing can be fixed automatically.\n0 errors, 1 warning"
    )
    run("undo", "v000001")
    assert notes_of(fixable) == old_notes


def test_the_help_and_the_page_name_every_check(run: Run) -> None:
    page = (Path(__file__).parents[2] / "docs/doctor.md").read_text(encoding="utf-8")
    named = " ".join(run("doctor", "--help", vault=None).out.replace("│", " ").split()).partition(
        "The checks: "
    )[2]
    assert named.partition(".")[0].split(", ") == list(CHECKS)
    assert [row.split("`")[1] for row in page.split("\n") if row.startswith("| `")] == list(CHECKS)
