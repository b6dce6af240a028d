"""Pages and sources cite pages, headings and faults that exist; pages name no plan outside the repository."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

REPOSITORY = Path(__file__).resolve().parent.parent
INTERNALS = REPOSITORY / "docs" / "internals"
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.joinpath("docs").rglob("*.md")])
SOURCES = sorted(
    path
    for folder in ("simplemem", "tests", "bench")
    for suffix in ("py", "sql", "md")
    for path in (REPOSITORY / folder).rglob(f"*.{suffix}")
    if path != Path(__file__) and not path.is_relative_to(REPOSITORY / "tests" / "data")
)

# A page of the repository, perhaps with a heading: docs/internals/links.md#moves
_PAGE = re.compile(r"\b(?:docs|tests|bench)/[\w./-]+\.md(?:#[\w-]*)?")
# Notes that examples and error messages name. They are in a vault, not in the repository.
_NOTES = {"docs/fog.md", "docs/notes/a.md", "docs/plan.md", "docs/tea.md"}
# What only a name of the code looks like: snake_case, CamelCase, a constant or a dotted name.
_IDENTIFIER = re.compile(r"_|[a-z][A-Z]|\.|^[A-Z]")
_FAULT = re.compile(r"\bF[0-9]{1,2}\b")
_FAULT_RANGE = re.compile(r"\bF(?P<first>[0-9]{1,2})(?:-| to )F(?P<last>[0-9]{1,2})\b")

# Pages that were used to plan the program. They are not in the repository, so a reader cannot follow
# such a citation. The numbers are those of goals, invariants and capabilities in these pages.
_OUTSIDE = re.compile(
    r"""\b(?:DESIGN|STYLE)\b
      | (?<![\w/.-])(?:capabilities|durability|field|glossary|house|languages|limits|memento|obsidian
          |remember|retrieval|scale|talk|terms)\.md\b
      | \bspec/[\w-]+\.md
      | (?<!RFC\ )(?<!RFC\ \d{4}\ )§
      | \b[GI][0-9]{1,2}\b
      | \b(?:HM|SI|SM)-[0-9]{1,2}\b""",
    re.VERBOSE,
)


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


of_every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def test_every_citation_leads_to_a_page_and_a_heading() -> None:
    broken = [
        f"{name_of(path)}: {citation}"
        for path in [*PAGES, *SOURCES]
        for citation in citations_in(path.read_text(encoding="utf-8"))
        if citation not in _NOTES and not leads_somewhere(citation)
    ]
    assert broken == []


@of_every_page
def test_no_page_names_a_plan_outside_the_repository(page: Path) -> None:
    plans = _OUTSIDE.findall(page.read_text(encoding="utf-8"))
    assert [plan for plan in plans if not (page.parent / plan).exists()] == []


def test_every_module_that_the_pages_for_contributors_name_exists() -> None:
    modules = {
        path.name
        for folder in ("simplemem", "tests", "bench", "docs", "bundles")
        for path in (REPOSITORY / folder).rglob("*.py")
    }
    missing = [
        f"{name_of(page)}: {module}"
        for page in (REPOSITORY / "CONTRIBUTING.md", *INTERNALS.glob("*.md"))
        for module in re.findall(r"`(\w+\.py)`", page.read_text("utf-8"))
        if module not in modules
    ]
    assert missing == []


@of_every_page
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`([\w./-]+/(?:[\w.-]+\.(?:py|sql|md|tsv))?)`", page.read_text("utf-8"))
    # What is in `.simplemem/` and other hidden folders is of a vault, not of the repository, and so
    # are notes, such as the profiles of users.
    own = [
        name
        for name in named
        if name.partition("/")[0] in top_level_names()
        and not name.startswith((".", "profiles/default.md"))
    ]
    roots = (REPOSITORY, REPOSITORY / "simplemem", REPOSITORY / "tests")
    assert [name for name in own if not any((root / name).exists() for root in roots)] == []


@pytest.mark.parametrize("page", sorted(INTERNALS.glob("*.md")), ids=lambda page: page.name)
def test_every_name_of_the_code_that_a_page_about_internals_cites_exists(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    cited = [name for name in re.findall(r"`([A-Za-z_][\w.]*)`", text) if _IDENTIFIER.search(name)]
    assert [name for name in cited if not words_of_the_code().issuperset(name.split("."))] == []


@pytest.mark.parametrize(
    "text",
    [
        "docs/internals/missing.md",
        "docs/internals/writing.md#missing",
        "the fault F99",
        "the faults F70 to F99",
    ],
)
def test_a_citation_that_leads_nowhere_would_be_found(text: str) -> None:
    assert not all(map(leads_somewhere, citations_in(text)))


@pytest.mark.parametrize(
    "text", ["obsidian.md §1.4", "DESIGN §7", "limits.md", "(spec/terms.md)", "F36; I7", "SI-12"]
)
def test_a_page_outside_the_repository_would_be_found(text: str) -> None:
    assert _OUTSIDE.search(text)


@pytest.mark.parametrize(
    "text",
    ["docs/durability.md", "RFC 9110 §13.1", "docs/internals/links.md#moves", "people/obsidian.md"],
)
def test_a_page_of_the_repository_may_be_cited(text: str) -> None:
    assert not _OUTSIDE.search(text)


def citations_in(text: str) -> list[str]:
    return [*_PAGE.findall(text), *faults_in(text)]


def leads_somewhere(citation: str) -> bool:
    return citation in known_faults() or exists(citation)


def exists(citation: str) -> bool:
    name, mark, heading = citation.partition("#")
    page = REPOSITORY / name
    return page.is_file() and (not mark or heading in headings_of(page))


@cache
def words_of_the_code() -> frozenset[str]:
    sources = [path for path in SOURCES if path.is_relative_to(REPOSITORY / "simplemem")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


@cache
def headings_of(page: Path) -> set[str]:
    """Return the headings of a page as links name them."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    titles = [
        tokens[index + 1].content
        for index, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def faults_in(text: str) -> list[str]:
    """Return the numbers of faults that a text cites, with those within a range."""
    faults = _FAULT.findall(text)
    for match in _FAULT_RANGE.finditer(text):
        first, last = int(match["first"]), int(match["last"])
        faults += [f"F{number}" for number in range(first, last + 1)]
    return faults


@cache
def known_faults() -> frozenset[str]:
    """Return the faults that have a row in docs/internals/writing.md."""
    text = (INTERNALS / "writing.md").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^\| (F[0-9]+) \|", text, re.MULTILINE))


@cache
def top_level_names() -> frozenset[str]:
    folders = (REPOSITORY, REPOSITORY / "simplemem", REPOSITORY / "tests")
    return frozenset(path.name for folder in folders for path in folder.iterdir() if path.is_dir())
