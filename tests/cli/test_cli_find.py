"""search, list, show, backlinks, context: what a person and a program get to see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem import open_store

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


def test_a_search_shows_name_title_place_and_passage(run: Run) -> None:
    shown = run("search", "budget", "approved").out
    first, place, passage = shown.split("\n")[:3]
    assert first.split() == ["1", "projects/apollo", "Apollo", first.split()[-1]]
    assert "Budget" in place and "line 1" in place and "#status/active" in place
    assert "The budget was approved" in passage


def test_a_search_for_programs_has_the_fields_of_a_hit(run: Run) -> None:
    found = run("search", "budget", "--json").json
    assert found["query"] == "budget"
    assert found["hits"][0]["name"] == "projects/apollo"
    assert {"title", "score", "snippet", "heading", "line", "tags", "modified", "sha256"} <= found["hits"][0].keys()
    assert found["index"] == {"state": "ready", "notes": 3, "pending": 0, "reason": ""}


def test_what_changed_by_hand_is_found_at_once(run: Run, vault: Path) -> None:
    assert run("search", "xylograph", "--json").json["hits"] == []
    (vault / "new.md").write_text("A xylograph.\n", encoding="utf-8")
    assert [hit["name"] for hit in run("search", "xylograph", "--json").json["hits"]] == ["new"]


def test_nothing_found_is_no_failure(run: Run) -> None:
    ran = run("search", "zzzqqq")
    assert (ran.code, ran.out) == (0, "Nothing found.\n")


def test_a_word_with_a_dash_is_excluded_not_an_option(run: Run) -> None:
    both = run("search", "launch", "--json").json["hits"]
    assert {hit["name"] for hit in both} == {"projects/apollo", "log/2026-01-24"}
    one = run("search", "launch", "-calm", "--json").json["hits"]
    assert {hit["name"] for hit in one} == {"projects/apollo"}


def test_a_mistyped_option_is_told_and_its_neighbour_named(run: Run) -> None:
    ran = run("search", "launch", "--limt", "3")
    assert ran.code == 2
    assert "--limt" in ran.err and "--limit" in ran.err


def test_tags_narrow_by_presence_and_by_value_in_every_notation(run: Run) -> None:
    def named(*options: str) -> set[str]:
        return {hit["name"] for hit in run("search", "launch", *options, "--json").json["hits"]}

    assert named("--tag", "status=done") == {"log/2026-01-24"}
    assert named("--tag", "#status") == {"log/2026-01-24", "projects/apollo"}
    assert named("--tag", "status=done", "--tag", "project") == {"log/2026-01-24", "projects/apollo"}
    assert named("--tag", "status=done", "--tag", "project", "--all") == set()
    assert named("--tag", "status=done", "--tag", "status=active") == {"log/2026-01-24", "projects/apollo"}


def test_other_filters_narrow_a_search(run: Run) -> None:
    def named(*options: str) -> set[str]:
        return {hit["name"] for hit in run("search", "launch", *options, "--json").json["hits"]}

    assert named("--type", "project") == {"projects/apollo"}
    assert named("--prefix", "log/") == {"log/2026-01-24"}
    assert named("--since", "2026-01-22") == {"log/2026-01-24"}
    assert named("--until", "2026-01-22") == {"projects/apollo"}
    assert named("--link-to", "Ada") == {"projects/apollo"}
    assert named("--linked-by", "Ada") == {"projects/apollo"}


def test_the_limit_is_the_option_or_the_setting(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run("search", "launch", "--limit", "1", "--json").json["hits"]) == 1
    monkeypatch.setenv("SIMPLEMEM_SEARCH_LIMIT", "1")
    assert len(run("search", "launch", "--json").json["hits"]) == 1


def test_explain_gives_reasons_for_each_hit(run: Run) -> None:
    assert "why  " in run("search", "launch", "--explain").out
    assert "why  " not in run("search", "launch").out
    assert run("search", "launch", "--explain", "--json").json["hits"][0]["why"]


def test_a_degraded_search_says_so_beside_the_answer(run: Run) -> None:
    ran = run("search", "launch", "--mode", "semantic")
    assert ran.code == 0
    assert "note: " in ran.err


def test_a_list_is_newest_first_and_names_tags_and_days(run: Run) -> None:
    lines = run("list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["log/2026-01-24", "projects/apollo", "people/Ada"]
    assert "Apollo" in lines[1] and "#status/active" in lines[1] and "2026-01-20" in lines[1]


def test_a_list_can_be_narrowed_sorted_and_limited(run: Run) -> None:
    names = lambda *options: [item["name"] for item in run("list", *options, "--json").json["items"]]  # noqa: E731
    assert names("--sort", "name") == sorted(names("--sort", "name"), key=str.casefold)
    assert names("--tag", "person") == ["people/Ada"]
    assert names("--prefix", "projects/") == ["projects/apollo"]
    assert names("--since", "2026-01-15", "--type", "project") == ["projects/apollo"]
    page = run("list", "--limit", "2", "--json").json
    assert (len(page["items"]), page["total"]) == (2, 3)
    assert "2 of 3 notes" in run("list", "--limit", "2").err


def test_every_note_can_be_listed_however_many(run: Run, vault: Path) -> None:
    for number in range(120):
        (vault / f"n{number:03}.md").write_text("x\n", encoding="utf-8")
    every = run("list", "--all-notes", "--json").json
    assert len({item["name"] for item in every["items"]}) == every["total"] == 123
    assert every["next_cursor"] is None
    assert len(run("list", "--limit", "110", "--json").json["items"]) == 110


def test_a_note_goes_into_a_pipe_to_the_byte(run: Run, vault: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    text = "\ufeff---\r\ntitle: Odd\r\n---\r\n\r\nb\x1b[31mell\u2028\r\nno newline at the end"
    (vault / "odd.md").write_bytes(text.encode())
    ran = run("show", "odd")
    assert ran.out == text.replace("\r\n", "\n")  # the runner reads line ends as Python does
    del capfdbinary


def test_a_note_is_found_by_title_alias_and_path(run: Run) -> None:
    for name in ("Apollo", "projects/apollo.md", "[[apollo]]"):
        assert run("show", name, "--json").json["name"] == "projects/apollo"
    assert run("show", "Countess", "--json").json["name"] == "people/Ada"


def test_a_section_alone(run: Run) -> None:
    shown = run("show", "Apollo", "--section", "Budget").out
    assert "approved by" in shown and "planned for spring" not in shown


def test_the_links_of_a_note_both_ways(run: Run) -> None:
    shown = run("show", "Ada", "--links").out
    assert "links to     projects/apollo  line 8" in shown
    assert "nowhere" in shown and "unresolved" in shown
    assert "linked from  projects/apollo" in shown


def test_a_note_that_is_not_there_names_its_neighbour(run: Run) -> None:
    ran = run("show", "projects/apolo")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ") and "projects/apollo" in ran.err
    failed = run("show", "projects/apolo", "--json")
    assert (failed.code, failed.err) == (1, "")
    assert failed.json["error"]["code"] == "not_found"


def test_a_broken_header_is_shown_and_said(run: Run, vault: Path) -> None:
    (vault / "broken.md").write_text("---\ntitle: [unclosed\n---\nThe quokka.\n", encoding="utf-8")
    ran = run("show", "broken")
    assert ran.code == 0 and "The quokka." in ran.out and "note: " in ran.err
    assert "unreadable" in run("list").out


def test_backlinks_say_where_the_link_stands(run: Run) -> None:
    shown = run("backlinks", "Ada", "--kind", "link").out
    assert shown.startswith("projects/apollo  wiki, line 17\n")
    assert "approved by" in shown
    answer = run("backlinks", "Ada", "--kind", "link", "--json").json
    assert answer["name"] == "people/Ada" and answer["items"][0]["kind"] == "link"


def test_notes_alike_are_backlinks_of_another_kind(run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLEMEM_EMBED_PROVIDER", "wordllama")
    (vault / "rain.md").write_text("Heavy rain and strong wind over the harbour all day.\n")
    (vault / "storm.md").write_text("A storm with rain and wind came over the harbour.\n")
    items = run("backlinks", "rain", "--kind", "semantic", "--json").json["items"]
    assert [(item["name"], item["kind"]) for item in items] == [("storm", "semantic")]
    assert run("backlinks", "rain").out.startswith("storm  alike 0.")


def test_a_context_fits_its_budget_and_names_its_sources(run: Run) -> None:
    pack = run("context", "launch", "budget", "--budget", "120", "--json").json
    assert 0 < pack["tokens"] <= 120
    assert "projects/apollo" in {item["name"] for item in pack["items"]}
    assert "budget was approved" in run("context", "budget").out
    assert run("context", "zzzqqq", "--tag", "nowhere").out == "Nothing found.\n"


def test_explain_shows_the_numbers_of_every_hit_in_a_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPLEMEM_EMBED_PROVIDER", "wordllama")
    shown = run("search", "launch", "budget", "zzzqqq", "--prefix", "projects/", "--explain")
    lines = shown.out.splitlines()
    header = next(line for line in lines if "score = words" in line)
    assert "by note" in header and "near passage" in header
    row = lines[lines.index(header) + 1]
    assert row.split()[0] == "1" and "#1 " in row
    score, made = row.split("#")[0].split("=")
    assert float(score.split()[1]) == pytest.approx(sum(float(part) for part in made.split("+")), abs=0.02)
    assert "why  holds launch, budget · lacks zzzqqq" in shown.out
    assert "launch in 2 notes, budget in 1 note, zzzqqq in no notes" in shown.out
    assert "path projects/: removed 2, left 1" in shown.out


def test_why_says_where_a_note_is_in_a_few_lines(run: Run) -> None:
    shown = run("search", "launch", "--limit", "1", "--why", "log/2026-01-24").out
    assert shown.startswith("log/2026-01-24  It is number 2 of 2, and 1 was shown.")
    assert "A limit of 2 shows it." in shown
    assert "projects/apollo" in shown.splitlines()[-1]
    assert "does not pass the filter type project" in run("search", "launch", "--type", "project", "--why", "Ada").out
    told = run("search", "launch", "--why", "Ada", "--json").json
    assert (told["why"]["name"], told["why"]["verdict"]) == ("people/Ada", "no_match")
    assert len(told["hits"]) == 2


def test_why_of_a_name_that_nothing_has_fails_with_those_that_are_near(run: Run) -> None:
    ran = run("search", "launch", "--why", "Appollo")
    assert ran.code == 1
    assert "projects/apollo" in ran.err


def test_a_context_says_on_a_terminal_what_was_left_out(run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (vault / "copy.md").write_text("The weather was calm, launch rehearsed.\n", encoding="utf-8")
    assert run("context", "launch", "rehearsed", "--budget", "50").err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    ran = run("context", "launch", "rehearsed", "--budget", "50")
    assert "launch rehearsed" in ran.out
    assert "passages left out: " in ran.err and "for the budget" in ran.err
    whole = run("context", "launch", "rehearsed", "--budget", "5000")
    assert "1 that say the same" in whole.err
    assert "also in [" in whole.out


def test_a_budget_that_nothing_fits_into_is_not_called_nothing_found(run: Run, vault: Path) -> None:
    folder = vault / "/".join(["a long folder of many words"] * 12).lstrip("/")
    folder.mkdir(parents=True)
    (folder / "note.md").write_text("The xylograph.\n", encoding="utf-8")
    assert run("context", "xylograph", "--budget", "50").out == "Nothing fits into so few tokens.\n"


def test_a_search_says_who_changed_a_note_last_when_it_is_asked(run: Run) -> None:
    run("new", "gas", "-", input=b"Helium is dear.\n")
    assert "by human, 20" in run("search", "helium", "--authors").out
    assert "by human" not in run("search", "helium").out
    assert [hit["authors"] for hit in run("search", "helium", "--authors", "--json").json["hits"]] == [["human"]]


def test_a_search_can_be_of_one_authors_notes(run: Run, vault: Path) -> None:
    with open_store(vault) as store:
        store.create("gas", "Helium is dear.", who="ada-code 1.0", tool="create_memory")
    assert [hit["name"] for hit in run("search", "helium", "--author", "agent", "--json").json["hits"]] == ["gas"]
    assert run("search", "helium", "author:human").out == "Nothing found.\n"
    assert "by ada-code 1.0" in run("search", "helium", "author:ada").out
