"""A note is read as a page of the graph, and changed line by line."""

from __future__ import annotations

import pytest

from simplemem.features.graph.bullets import format_relation
from simplemem.features.graph.page import GraphPage, read_page
from simplemem.features.graph.page_edits import add_items, remove_bullets, render_page
from simplemem.features.graph.values import Entity, Observation

BY_HAND = """---
type: entity
entity_type: component
aliases: [aurora-api]
---

# Aurora API

Prose about it, with a [[Link]] that is no relation.

## Observations
- Serves the public REST interface
- Rate limit is 50 requests per second %%confidence=0.8 at=2026-11-19%%
- Rejects unsigned webhooks
  since the incident in October

## Relations
- uses [[PostgreSQL|the database]] %%strength=0.9%%
- implements [[Sign webhooks#Why]]
- [[Identity Service]]
- not a relation

## Notes
- [decision] Keep it small #api (agreed)
- depends on [[Redis]]
- just a point
"""


def read(text: str, path: str = "graph/Aurora API.md") -> GraphPage:
    return read_page(path, text, "")


def new(name: str, kind: str, *said: Observation, order: int = 1, stub: bool = False) -> str:
    return render_page(
        "graph/file.md", Entity(name, kind, said), order, "2026-11-22T00:00:00", is_stub=stub
    )


def said(page: GraphPage) -> list[str]:
    return [each.text for each in page.observations]


def related(page: GraphPage) -> list[tuple[str, str]]:
    return [(line.type, line.link or line.name) for line in page.relation_lines]


def test_what_a_person_wrote_is_understood() -> None:
    page = read(BY_HAND)
    assert (page.name, page.type, page.is_own, page.order) == (
        "Aurora API",
        "component",
        True,
        None,
    )
    assert said(page) == [
        "Serves the public REST interface",
        "Rate limit is 50 requests per second",
        "Rejects unsigned webhooks\nsince the incident in October",
    ]
    assert page.observations[1].attributes == {"confidence": 0.8, "at": "2026-11-19"}
    assert related(page) == [
        ("uses", "PostgreSQL"),
        ("implements", "Sign webhooks"),
        ("relates_to", "Identity Service"),
    ]


def test_bullets_under_the_title_of_an_entity_count_without_a_heading() -> None:
    text = (
        "# Ada\n- likes tea\n- works at [[Acme]]\n- met [[Bob]] in May\n\n## Todo\n- [ ] call her\n"
    )
    page = read(text, "graph/Ada.md")
    assert (page.name, page.type, said(page)) == (
        "Ada",
        "entity",
        ["likes tea", "met [[Bob]] in May"],
    )
    assert related(page) == [("works at", "Acme")]


def test_in_another_note_relations_count_above_its_headings_where_nothing_follows_the_link() -> (
    None
):
    text = "# Tea\n- plain\n- grown_in [[Fujian]]\n- good with [[Milk]] in it\n\n## Later\n- buy [[Oolong]]\n"
    page = read(text, "notes/Tea.md")
    assert (page.is_own, said(page), related(page)) == (False, [], [("grown_in", "Fujian")])


@pytest.mark.parametrize(
    "item",
    [
        "New here? See [[Milk]]",  # prose
        "one two three four five [[Milk]]",
        "[[Milk]]",
        "**grown** [[Milk]]",
        "grown in [[Milk]] and elsewhere",
        "see [[#Later]]",
        "see [[Tea]]",
        "see [[notes/Tea#Later|below]]",
        "see `[[Milk]]`",
        '"see" [[Milk]]',
        'see "Milk"',
    ],
)
def test_a_list_item_with_prose_and_a_link_is_no_relation(item: str) -> None:
    page = read(f"# Tea\n- {item}\n- goes well with [[Milk]]\n", "notes/Tea.md")
    assert related(page) == [("goes well with", "Milk")]
    assert said(read(f"- {item}\n", "graph/notes/Tea.md"))  # of an entity it is an observation


def test_no_relation_is_code_or_has_an_empty_name() -> None:
    page = read(
        "## Relations\n- `see [[A]]`\n- see [[#Here]]\n- `calls` of [[B]]\n- ``a ` [[C]]`` then [[D`E]]\n"
    )
    assert related(page) == [("`calls` of", "B"), ("``a ` [[C]]`` then", "D`E")]
    line = format_relation("`odd", "[[a`b]]", {})
    assert related(read(f"## Relations\n{line}\n")) == [("`odd", "a`b")]


@pytest.mark.parametrize(
    ("told", "kind"), [("person", "person"), ("Entity", "entity"), ("", "entity")]
)
def test_a_note_in_the_graph_folder_is_an_entity_of_the_type_it_says(told: str, kind: str) -> None:
    page = read(f"---\ntype: {told}\n---\n- likes tea\n", "graph/Ann.md")
    assert (page.is_own, page.type, said(page)) == (True, kind, ["likes tea"])
    assert not read("---\ntype: person\n---\n- likes tea\n", "people/Ann.md").is_own


def test_adding_touches_nothing_but_the_end_of_the_section() -> None:
    page = read(BY_HAND)
    changed = add_items(BY_HAND, page, "observations", ["- new"])
    assert changed == BY_HAND.replace("in October\n", "in October\n- new\n")
    changed = add_items(BY_HAND, page, "relations", ["- knows [[Ada]]"])
    assert changed == BY_HAND.replace("- not a relation\n", "- not a relation\n- knows [[Ada]]\n")


def test_observations_come_before_relations_when_the_section_is_made() -> None:
    text = "Some prose.\n\n## Relations\n- knows [[Ada]]"
    changed = add_items(text, read(text), "observations", ["- one"])
    assert changed == "Some prose.\n\n## Observations\n- one\n\n## Relations\n- knows [[Ada]]"
    changed = add_items(changed, read(changed), "relations", ["- knows [[Eve]]"])
    assert changed.endswith("- knows [[Ada]]\n- knows [[Eve]]\n")


def test_what_is_added_comes_between_no_item_and_its_own_words() -> None:
    for own in ("lazy words\n", "\n  A second paragraph\n", "\n  ```\n  - code\n  ```\n"):
        text = f"## Observations\n- one\n{own}\nOther words\n"
        changed = add_items(text, read(text), "observations", ["- two"])
        assert changed == f"## Observations\n- one\n{own}- two\n\nOther words\n"


COMMENTS = (
    "%%\n{}%%\n",
    "%% to do:\n{}%% and so on\n",
    "<!--\n{}-->\n",
    "%% one line %%\n<!-- another -->\n",
)


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_a_comment_holds_is_not_read_and_stays_as_it_is(comment: str, ending: str) -> None:
    hidden = comment.format(
        "- hidden\n- knows [[Nobody]]\n\n## Relations\n- [fact] hidden too\n```\n"
    )
    text = f"## Observations\n- one\n{hidden}- two\n\n{hidden}\n## Relations\n{hidden}- knows [[Ada]]\n{hidden}"
    text = text.replace("\n", ending)
    page = read(text)
    assert (said(page), related(page)) == (["one", "two"], [("knows", "Ada")])
    more = add_items(text, page, "observations", ["- three"])
    more = add_items(more, read(more), "relations", ["- knows [[Eve]]"])
    assert said(read(more)) == ["one", "two", "three"]
    assert related(read(more)) == [("knows", "Ada"), ("knows", "Eve")]
    assert more.count(hidden.replace("\n", ending)) == 4
    assert more.replace(f"- three{ending}", "").replace(f"- knows [[Eve]]{ending}", "") == text
    less = remove_bullets(text, page.bullets)
    assert (said(read(less)), related(read(less))) == ([], [])
    assert less.count(hidden.replace("\n", ending)) == 4


def test_a_comment_within_an_item_is_no_part_of_what_it_says() -> None:
    hidden = "  %%\n  - hidden\n\n  - knows [[Nobody]]\n  %%\n"
    text = f"## Observations\n- one\n{hidden}- two\n  %% confidence=0.5 %%\n- three\n"
    page = read(text)
    assert said(page) == ["one", "two", "three"]
    assert page.observations[1].attributes == {"confidence": 0.5}
    assert remove_bullets(text, page.bullets[:1]) == text.replace("- one\n", "")


@pytest.mark.parametrize("mark", ["%%", "<!--", "```"])
def test_behind_a_comment_that_nobody_closed_nothing_is_read_or_added(mark: str) -> None:
    for before in ("", "## Observations\n- one\n\n"):
        text = f"{before}{mark} later\n- hidden\n"
        assert said(read(text)) == ["one"] * bool(before)
        changed = add_items(text, read(text), "observations", ["- two"])
        assert said(read(changed))[-1:] == ["two"]
        assert changed.endswith(f"{mark} later\n- hidden\n")
