"""Links and tags in the body and in properties: what is one, what hides it, and where its parts stand."""

from __future__ import annotations

import unicodedata

import pytest

from simplemem.note.body import Link, read_body
from simplemem.note.note import read_note


def links(text: str) -> tuple[Link, ...]:
    return read_body(text, 0).links


def targets(text: str) -> list[str]:
    return [link.target for link in links(text)]


def tags(text: str) -> list[str]:
    return list(read_body(text, 0).tags)


@pytest.mark.parametrize(
    ("source", "target", "subpath", "display"),
    [
        ("[[Note]]", "Note", "", ""),
        ("[[ Note |shown]]", "Note", "", "shown"),
        ("[[folder/Note.md|a|b]]", "folder/Note.md", "", "a|b"),
        ("[[Note#H#Sub|x]]", "Note", "#H#Sub", "x"),
        ("[[#^id]]", "", "#^id", ""),
        ("[[pa#th/x]]", "pa", "#th/x", ""),
        ("[[|x]]", "|x", "", ""),
        ("[[Sq]uare]]", "Sq]uare", "", ""),
        ("[[https://example.com]]", "https://example.com", "", ""),
        ("[[Other\u00a0" + unicodedata.normalize("NFD", "Café") + "]]", "Other Café", "", ""),
        ("[[a `b` $c$ 100%]]", "a `b` $c$ 100%", "", ""),
    ],
)
def test_wikilinks_are_read_into_target_subpath_and_display(
    source: str, target: str, subpath: str, display: str
) -> None:
    (link,) = links(f"see {source} there")
    assert (link.form, link.is_embed, link.target, link.subpath, link.display) == (
        "wiki",
        False,
        target,
        subpath,
        display,
    )
    assert (link.start, link.end, link.line) == (4, 4 + len(source), 1)


@pytest.mark.parametrize(
    ("source", "target", "subpath"),
    [
        ("[t](Other%20Note.md#A%20b)", "Other Note.md", "#A b"),
        ("[t](<Other Note.md> 'title')", "Other Note.md", ""),
        ('[t](Note.md "title")', "Note.md", ""),
        ("[t](Note\\(1\\).md)", "Note(1).md", ""),
        ("[t](Note%20&%20Co%20(2024).md)", "Note & Co (2024).md", ""),
        ("[t](a&amp;b.md)", "a&b.md", ""),
        ("[t](bad%ff.md)", "bad%ff.md", ""),
        ("[t](#here)", "", "#here"),
        ("[a [b] c](../up/Note)", "../up/Note", ""),
    ],
)
def test_markdown_links_are_decoded(source: str, target: str, subpath: str) -> None:
    (link,) = links(f"see {source} there")
    assert (link.form, link.target, link.subpath, link.end - link.start) == (
        "markdown",
        target,
        subpath,
        len(source),
    )


@pytest.mark.parametrize(
    "source",
    [
        "[[]]", "[[ ]]", "[t]()", "[]()", "[t](<>)", "[t](Other Note.md)", "[t] (Note.md)", "[[no\nlink]]", "\\[[Note]]",
        "\\[\\[Note\\]\\]", "[t](https://example.com/Note.md)", "[t](mailto:a@example.com)", "[t](//example.com/x)",
        "<https://example.com/[[Note]]>", "[t][ref]", "[t](a(b)", "![x](https://example.com/a.png)",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_link_is_none(source: str) -> None:
    assert targets(f"see {source} there") == []


def test_every_part_of_a_link_can_be_spliced() -> None:
    text = "![[ Pic.png |40]] [say](<a b.md#h>) [[N#s|t]] [[T\\|d]] [](x.md)"
    assert [
        (
            text[link.start : link.end],
            text[link.path_start : link.path_end],
            text[link.display_start : link.display_end] if link.display_start >= 0 else None,
            link.is_embed,
            link.angle,
        )
        for link in links(text)
    ] == [
        ("![[ Pic.png |40]]", "Pic.png", "40", True, False),
        ("[say](<a b.md#h>)", "a b.md", "say", False, True),
        ("[[N#s|t]]", "N", "t", False, False),
        ("[[T\\|d]]", "T", "d", False, False),
        ("[](x.md)", "x.md", None, False, False),
    ]


def test_links_inside_links_and_brackets() -> None:
    assert targets("[[outer [[Target]] text]] [[[Note]]] ![[![[In]]") == ["Target", "Note", "In"]
    assert targets("[![alt](image.png)](Target.md) [x [[In]] y](Out.md)") == [
        "Target.md",
        "image.png",
        "Out.md",
        "In",
    ]
    assert targets("[a [b](In.md) c](Out.md)") == ["In.md"]


@pytest.mark.parametrize(
    "hidden",
    [
        "`[[T]] #t`", "``x ` [[T]] #t``", "`two\nlines [[T]] #t`", "$x [[T]] #t y$", "$$ [[T]] #t\n#t $$",
        "$$\n[[T]]\n\n- [[T]] #t\n$$", "<!-- [[T]] #t -->", "<b title=' [[T]] #t '>", "```\n[[T]] #t\n```",
        "~~~\n```\n[[T]] #t\n~~~", "> ```\n> [[T]] #t\n> ```", "- x\n\n      [[T]] #t", "    [[T]] #t",
        "<div>\n[[T]] #t\n</div>", "<!--\n[[T]]\n\n#t\n-->", "[//]: # ([[T]])",
    ],
)  # fmt: skip
def test_code_math_and_html_hide_links_and_tags_and_nothing_after_them(hidden: str) -> None:
    body = read_body(f"a\n\n{hidden}\n\n[[seen]] #seen", 0)
    assert ([link.target for link in body.links], list(body.tags)) == (["seen"], ["seen"])


@pytest.mark.parametrize(
    "shown",
    [
        "%% [[T]] #t %%", "%%\n[[T]] #t\n%%", "# Head [[T]] #t", "> [!note] [[T]] #t", "- [ ] do [[T]] #t",
        "[^1]: [[T]] #t", "[^1]:[[T]] #t", "^[inline [[T]] #t ]", "**[[T]]** #t", "line<br>[[T]] <u>#t</u>",
        "costs $5 [[T]] #t and $6", "$open [[T]] #t", "` [[T]] #t", "x <!-- [[T]] #t", "tags:: [[T]], #t",
        "| a |\n|---|\n| [[T]] | #t |", "| a | b |\n|---|---|\n| ` | [[T]] #t ` |", "x\n    [[T]] #t", "-\n\n  [[T]] #t",
    ],
)  # fmt: skip
def test_links_and_tags_count_everywhere_else(shown: str) -> None:
    body = read_body(shown + "\n", 0)
    assert ([link.target for link in body.links], list(body.tags)) == (["T"], ["t"])


def test_in_a_table_the_bar_of_a_link_may_be_escaped_or_not() -> None:
    text = "| a | b |\n| --- | --- |\n| [[T\\|shown]] | ![[i.png\\|40]] |\n| [[U|plain]] | x |\n"
    assert [(link.target, link.display) for link in links(text)] == [
        ("T", "shown"),
        ("i.png", "40"),
        ("U", "plain"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "#first then #nested/child, #snake_case #a-b #y1984",
            ["first", "nested/child", "snake_case", "a-b", "y1984"],
        ),
        ('#1984 # # x#no (#no) "#no" x,#no ，#no https://x.y/#no &#35; ##no', []),
        ("#one. #two, #five) #six's #a/ #b//", ["one", "two", "five", "six", "a", "b"]),
        ("#日本語 #été #🚀 #naïve/straße", ["日本語", "été", "🚀", "naïve/straße"]),
        ("#Bob#Alice", ["Bob", "Alice"]),
        ("**#bold** *#it* _(==#hi==)_ a*#no", ["bold", "it", "hi"]),
        ("<br>#x `c`#y \\[#z [[N]]#w", ["x", "y", "z", "w"]),
        (">#quoted\n> #two\n\na>#no", ["quoted", "two"]),
        ("#a\u00a0#b\u3000#c\u200bd", ["a", "b", "c"]),
        ("[#in text](N.md) [#not](no link)", ["in"]),
        ("#[[multi word]]", []),
        ("| #cell|#next |\n|---|---|\n", ["cell", "next"]),
    ],
)
def test_tags_follow_obsidians_grammar(text: str, expected: list[str]) -> None:
    assert tags(text) == expected


def property_links(header: str) -> list[tuple[str | None, str, str]]:
    text = f"---\n{header}\n---\n"
    return [
        (link.property, link.target, text[link.path_start : link.path_end])
        for link in read_note(text.encode()).links
    ]


def test_a_property_that_is_one_link_is_a_link() -> None:
    assert property_links(
        'up: "[[Target]]"\nrelated:\n  - "[[Other|shown]]"\n  - \'[[U#h]]\'\nself: "[[#Here]]"'
    ) == [
        ("up", "Target", "Target"),
        ("related.0", "Other", "Other"),
        ("related.1", "U", "U"),
        ("self", "", ""),
    ]
    assert property_links('meta:\n  inner: "[t](My%20Note.md)"') == [
        ("meta.inner", "My Note.md", "My%20Note.md")
    ]


@pytest.mark.parametrize(
    "header",
    [
        "unquoted: [[T]]",
        's: "see [[T]] there"',
        'two: "[[A]] [[B]]"',
        'web: "[w](https://x.org)"',
        '# c: "[[T]]"',
        'e: "[[]]"',
    ],
)
def test_other_properties_are_no_links(header: str) -> None:
    assert property_links(header) == []


def test_a_property_link_that_is_escaped_in_the_source_names_its_scalar() -> None:
    text = '---\nup: "[[Caf\\u00e9|x]]"\n---\n'
    (link,) = read_note(text.encode()).links
    assert (link.target, link.display, link.line) == ("Café", "x", 2)
    assert link.scalar is not None
    assert text[link.path_start : link.path_end] == '"[[Caf\\u00e9|x]]"'
    assert link.display_start == -1
