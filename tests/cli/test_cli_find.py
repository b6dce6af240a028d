"""search, list, show, backlinks, context: what a person and a program get to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from simplemem.models import Found
from simplemem.store import EnhancedStore

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


def names(run: Run, *args: str) -> list[str]:
    return [hit["name"] for hit in run("search", *args, "--json").json["hits"]]


# -- search


def test_a_search_shows_name_title_place_and_passage(run: Run) -> None:
    first, place, passage = run("search", "budget", "approved").out.split("\n")[:3]
    assert first.split() == ["1", "projects/apollo", "Apollo", first.split()[-1]]
    assert "Budget" in place and "line 1" in place and "#status/active" in place
    assert "The budget was approved" in passage


def test_a_search_for_programs_is_the_stores_answer(run: Run) -> None:
    found = run("search", "budget", "--json").json
    assert found["query"] == "budget" and found["hits"][0]["name"] == "projects/apollo"
    assert {"title", "score", "snippet", "heading", "line", "tags", "modified", "sha256"} <= found[
        "hits"
    ][0].keys()
    assert found["index"] == {"state": "ready", "notes": 3, "pending": 0, "reason": ""}


def test_what_changed_by_hand_is_found_at_once_and_nothing_found_is_no_failure(
    run: Run, vault: Path
) -> None:
    ran = run("search", "xylograph")
    assert (ran.code, ran.out) == (0, "Nothing found.\nNo note contains: xylograph.\n")
    (vault / "new.md").write_text("A xylograph.\n", encoding="utf-8")
    assert names(run, "xylograph") == ["new"]


def test_a_word_with_a_dash_is_excluded_and_a_mistyped_option_is_told(run: Run) -> None:
    assert names(run, "launch", "-calm") == ["projects/apollo"]
    ran = run("search", "launch", "--limt", "3")
    assert ran.code == 2 and "--limt" in ran.err and "--limit" in ran.err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--tag", "status=done"), {"log/2026-01-24"}),
        (("--tag", "#status"), {"log/2026-01-24", "projects/apollo"}),
        (("--tag", "status=done", "--tag", "project"), {"log/2026-01-24", "projects/apollo"}),
        (("--tag", "status=done", "--tag", "project", "--all"), set()),
        (("--tag", "status=done", "--tag", "status=active"), {"log/2026-01-24", "projects/apollo"}),
        (("--type", "project"), {"projects/apollo"}),
        (("--prefix", "log/"), {"log/2026-01-24"}),
        (("--since", "2026-01-22"), {"log/2026-01-24"}),
        (("--until", "2026-01-22"), {"projects/apollo"}),
        (("--link-to", "Ada"), {"projects/apollo"}),
        (("--linked-by", "Ada"), {"projects/apollo"}),
        (("--author", "agent"), set()),
        (("--limit", "1"), {"projects/apollo"}),
    ],
)
def test_options_narrow_a_search(run: Run, options: tuple[str, ...], expected: set[str]) -> None:
    assert set(names(run, "launch", *options)) == expected


def test_explain_shows_the_numbers_of_every_hit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLEMEM_EMBED_PROVIDER", "wordllama")
    output = run("search", "launch", "budget", "zzzqqq", "--prefix", "projects/", "--explain").out
    assert (
        "why  rank score 1.00, words 1.00, meaning 1.00 · contains launch, budget · lacks zzzqqq"
        in output
    )
    assert "launch in 2, budget in 1, zzzqqq in 0" in output and "path projects/: 2" in output
    assert "why  " not in run("search", "launch").out


def test_why_says_where_a_note_is_and_near_names_when_there_is_none(run: Run) -> None:
    output = run("search", "launch", "--limit", "1", "--explain-note", "log/2026-01-24").out
    assert (
        output.startswith("log/2026-01-24  It is number 2 of 2")
        and "Set the limit to 2 or more to include it." in output
    )
    results = run("search", "launch", "--explain-note", "Ada", "--json").json
    assert (results["why"]["name"], results["why"]["verdict"], len(results["hits"])) == (
        "people/Ada",
        "no_match",
        2,
    )
    ran = run("search", "launch", "--explain-note", "Appollo")
    assert ran.code == 1 and "projects/apollo" in ran.err


# -- list


def test_a_list_is_newest_first_and_names_tags_and_days(run: Run) -> None:
    lines = run("list").out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "log/2026-01-24",
        "projects/apollo",
        "people/Ada",
    ]
    assert "Apollo" in lines[1] and "#status/active" in lines[1] and "2026-01-20" in lines[1]


def test_a_list_is_narrowed_sorted_and_limited_or_whole(run: Run, vault: Path) -> None:
    for number in range(520):
        (vault / f"n{number:03}.md").write_text("x\n", encoding="utf-8")
    listed = run(
        "list", "--sort", "name", "--tag", "project", "--since", "2026-01-15", "--json"
    ).json
    assert [item["name"] for item in listed["items"]] == ["projects/apollo"]
    listing = run("list", "--all-notes", "--json").json
    assert (
        len({item["name"] for item in listing["items"]}) == listing["total"] == 523
        and listing["next_cursor"] is None
    )
    assert len(run("list", "--limit", "510", "--json").json["items"]) == 510
    assert "2 of 523 notes" in run("list", "--limit", "2").err
    for command in (["list"], ["search", "budget"]):
        assert (
            run(*command, "--tag", "projct").err
            == "note: No note has #projct; similar: #project.\n"
        )


# -- show


def test_a_note_is_shown_by_any_of_its_names(run: Run) -> None:
    for name in ("Apollo", "projects/apollo.md", "[[apollo]]"):
        assert run("show", name, "--json").json["name"] == "projects/apollo"
    output = run("show", "Apollo", "--section", "Budget").out
    assert "approved by" in output and "planned for spring" not in output


def test_the_links_of_a_note_both_ways(run: Run) -> None:
    output = run("show", "Ada", "--links").out
    assert (
        "links to     projects/apollo  line 8" in output
        and "linked from  projects/apollo" in output
    )
    assert "nowhere" in output and "unresolved" in output


def test_a_note_that_is_not_there_names_its_neighbour(run: Run) -> None:
    ran = run("show", "projects/apolo")
    assert (
        (ran.code, ran.out) == (1, "")
        and ran.err.startswith("error: ")
        and "projects/apollo" in ran.err
    )
    failed = run("show", "projects/apolo", "--json")
    assert (failed.code, failed.err, failed.json["error"]["code"]) == (1, "", "not_found")
    assert (
        "--at and --version cannot be combined"
        in run("show", "Ada", "--at", "v1", "--version", "v1").err
    )


# -- backlinks and context


def test_backlinks_say_where_the_link_stands_or_how_alike_a_note_is(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = run("backlinks", "Ada", "--kind", "link").out
    assert output.startswith("projects/apollo  wiki, line 17\n") and "approved by" in output
    monkeypatch.setenv("SIMPLEMEM_EMBED_PROVIDER", "wordllama")
    (vault / "rain.md").write_text("Heavy rain and strong wind over the harbour all day.\n")
    (vault / "storm.md").write_text("A storm with rain and wind came over the harbour.\n")
    assert run("backlinks", "rain").out.startswith("storm  similarity 0.")
    answer = run("backlinks", "rain", "--kind", "semantic", "--json").json
    assert (answer["name"], answer["items"][0]["kind"]) == ("rain", "semantic")


def test_a_context_fits_its_budget_and_says_on_a_terminal_what_was_left_out(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = run("context", "launch", "budget", "--budget", "120", "--json").json
    assert 0 < pack["tokens"] <= 120 and "projects/apollo" in {
        item["name"] for item in pack["items"]
    }
    assert run("context", "zzzqqq", "--tag", "nowhere").out == "Nothing found.\n"
    (vault / "copy.md").write_text("The weather was calm, launch rehearsed.\n", encoding="utf-8")
    again = "The launch was rehearsed again, in fog, by a crew that was tired of being told what to do.\n"
    (vault / "again.md").write_text(again, encoding="utf-8")
    assert run("context", "launch", "rehearsed", "--budget", "50").err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    ran = run("context", "launch", "rehearsed", "--budget", "50")
    assert "launch rehearsed" in ran.out and "over the budget" in ran.err


def test_the_cost_of_a_note_in_a_pipe_does_not_grow_with_its_lines(run: Run, vault: Path) -> None:
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    counted = []
    for lines in (100, 20_000):
        text = "# Long\n\n" + "Some words of a line.\n" * lines
        (vault / "long.md").write_text(text, encoding="utf-8")
        run("list")  # which takes it into the index
        calls = 0
        sys.setprofile(count)
        try:
            ran = run("show", "long")
        finally:
            sys.setprofile(None)
        assert ran.out == text
        counted.append(calls)
    assert counted[1] < counted[0] + 2_000


@pytest.mark.parametrize("command", ["inspect", "list", "search"])
def test_what_goes_into_a_pipe_is_printed_without_rich(vault: Path, command: str) -> None:
    (vault / "\u6c17\u7403.md").write_text("A launch.\n", encoding="utf-8")
    arguments = [command, *(["launch"] if command == "search" else []), "--vault", str(vault)]
    code = (
        "import sys\nsys.argv[0] = 'simplemem'\nfrom simplemem.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print('rich.console' in sys.modules, file=sys.stderr)"
    )
    # Given on purpose: what is inherited may have the COLUMNS that readline has set in this process.
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, env=dict(os.environ)
    )
    assert "\u6c17\u7403" in ran.stdout.decode() and ran.stderr.strip() == b"False"


def test_a_context_that_answers_nothing_says_so_in_its_output(run: Run) -> None:
    """It is fed to a model, which does not read what a command says on stderr."""
    ran = run("context", "which", "passport", "for", "the", "launch", "of", "the", "zeppelin?")
    assert ran.out.startswith("Nothing found; these are the nearest.\n\n###"), ran.out
    assert "Nothing found" not in ran.err
    assert run("context", "budget", "approved").out.startswith("###")
    nothing = run("context", "zeppelin")
    assert nothing.out == "Nothing found.\n"


def test_printed_scores_fall_from_hit_to_hit(run: Run, vault: Path) -> None:
    for number, text in enumerate(
        ("budget", "the budget was approved", "approved by the launch team", "launch")
    ):
        (vault / f"more-{number}.md").write_text(f"{text}\n", encoding="utf-8")
    for words in (
        ("budget", "approved"),
        ("launch", "team", "budget"),
        ("was", "the", "launch", "approved?"),
    ):
        lines = run("search", *words, "--limit", "10").out.split("\n")
        scores = [float(line.split()[-1]) for line in lines if line[:2].strip().isdigit()]
        assert len(scores) > 2 and scores == sorted(scores, reverse=True)


def test_a_search_with_filters_and_no_words_lists_the_newest_notes_that_match(run: Run) -> None:
    found = run("search", "--tag", "todo", "--json").json
    assert [hit["name"] for hit in found["hits"]] == ["log/2026-01-24"]
    assert found.keys() == run("search", "launch", "--json").json.keys()
    newest = run("search", "--since", "2026-01-01", "--json").json
    assert [hit["name"] for hit in newest["hits"]] == [
        "log/2026-01-24",
        "projects/apollo",
        "people/Ada",
    ]
    assert [hit["name"] for hit in run("search", "--prefix", "people/", "--json").json["hits"]] == [
        "people/Ada"
    ]


@pytest.mark.parametrize("words", [(), ("",), ("--all",), ("--limit", "3")])
def test_a_search_with_neither_words_nor_filters_is_a_usage_error(
    run: Run, words: tuple[str, ...]
) -> None:
    refused = run("search", *words)
    assert refused.code == 2 and "give words to search for, or a filter" in refused.err


def test_the_words_that_no_note_contains_are_named_above_hits_that_are_only_near(run: Run) -> None:
    question = ("which", "passport", "for", "the", "launch", "of", "the", "zeppelin?")
    lines = run("search", *question).out.splitlines()
    assert (
        lines[0].startswith("No note contains: ")
        and "passport" in lines[0]
        and "zeppelin" in lines[0]
    )
    assert lines[1] == "Nothing found; these are the nearest."
    assert len(lines) > 2 and "No note contains" not in "\n".join(lines[1:])


def test_hits_of_a_query_whose_words_no_note_contains_are_said_to_be_near_by_meaning(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = EnhancedStore.search

    def accepting(*arguments: Any, **named: Any) -> Found:
        """Answer as if each hit were an answer: in a large vault, a text can be near to any word."""
        results = search(*arguments, **named)
        hits = search(arguments[0], "launch").hits
        return replace(results, hits=hits, only_nearest=False, notice="")

    monkeypatch.setattr(EnhancedStore, "search", accepting)
    assert run("search", "zzqqx").out.splitlines()[-1] == (
        "No note contains: zzqqx. The hits are the nearest by meaning."
    )
    assert run("search", "zzqqx", "launch").out.splitlines()[-1] == (
        "No note contains: zzqqx. The hits were found by the rest of the query."
    )


def test_notes_that_are_excluded_from_search_are_counted_beside_words_that_were_not_found(
    run: Run, vault: Path
) -> None:
    (vault / ".obsidian").mkdir()
    settings = {"userIgnoreFilters": ["archive/"]}
    (vault / ".obsidian" / "app.json").write_text(json.dumps(settings))
    (vault / "archive").mkdir()
    (vault / "archive" / "Old.md").write_text("A xylograph.\n")

    sentence = "No note contains: xylograph. Not looked at: 1 note excluded from search."
    assert sentence in run("search", "xylograph").out
    assert sentence in run("context", "xylograph").err
    assert run("search", "xylograph", "--json").json["not_searched"] == 1
    narrowed = run("search", "xylograph", "--prefix", "people/")
    assert "No note contains: xylograph." in narrowed.out
    assert "Not looked at" not in narrowed.out
    assert "not_searched" not in run("search", "launch", "--json").json


def test_a_name_typed_without_accents_shows_the_only_note_that_it_fits(
    run: Run, vault: Path
) -> None:
    (vault / "people" / "Élise Caron.md").write_text("In Brest.\n")
    ran = run("show", "elise caron")
    assert (ran.code, ran.out) == (0, "In Brest.\n")
    assert "people/Élise Caron" in ran.err
    (vault / "people" / "Elisé Caron.md").write_text("Another.\n")
    assert run("show", "elise caron").code == 1


def test_a_part_of_a_list_says_how_many_notes_are_shown(run: Run) -> None:
    ran = run("list", "--limit", "2")
    assert ran.err == "Shown: 2 of 3 notes; --limit or --all-notes shows more\n"
    assert run("list").err == ""


def test_a_name_that_contains_the_word_is_suggested_if_no_name_is_near(
    run: Run, vault: Path
) -> None:
    (vault / "Help and support.md").write_text("Ask.\n")
    ran = run("show", "help")
    assert ran.code == 1 and "Did you mean Help and support?" in ran.err
    assert "Did you mean" not in run("show", "hel").err


# -- open


def test_a_note_is_listed_by_a_part_of_its_name_with_wrong_letters(run: Run) -> None:
    listed = run("open", "apolo", "--list")
    assert (listed.code, listed.out.split()[0]) == (0, "projects/apollo")
    items = run("open", "apo", "--json").json["items"]
    assert items[0] == {"name": "projects/apollo", "title": "Apollo", "match": "Apollo"}


def test_a_name_that_no_note_resembles_is_not_found(run: Run) -> None:
    opened = run("open", "zzzz")
    assert opened.code == 1
    assert "no note has a name like 'zzzz'" in opened.err
