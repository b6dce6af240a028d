"""What a body holds, for any body: the fast scanner equals the Markdown parser, facts stand where they say,
passages cover.
"""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_oracle import Watched, parse_blocks

from simplemem.note.blocks import SPACES
from simplemem.note.body import Body, read_body
from simplemem.note.passages import MAX_TOKENS, cut_passages
from simplemem.note.words import count_tokens

EXAMPLES = settings.default.max_examples  # as the profile says

# What blocks are made of: marks, indents, fences, tables, HTML, definitions, and the text between them.
_MARKS = [
    "", " ", "  ", "   ", "    ", "\t", "> ", ">", "- ", "* ", "+ ", "1. ", "2) ", "-\t", "10. ", ">\t", ">  ", "-      ",
]  # fmt: skip
_CONTENTS = [
    "", "text", "more [[link]] #tag", "# heading", "## heading ##", "# C#", "#nope", "---", "===", "--",
    "***", "- - -", "_ _ _", "-", "*", "1.", "3.", "+", "```", "```py", "~~~", "````", "``` `",
    "~~~ `x", "$$", "$$ x", "$$x$$", "x $$", "| a | b |", "|---|---|", "a | b", "--- | ---", ":-:",
    "|-", "-|", "a\\|b", "| a", "<div>", "</div>", "<!-- c -->", "<!--", "-->", "<b>", "</b> ",
    "<br>[[x]]", "<script>", "</script>", "<?php", "?>", "<!X", "<![CDATA[", "]]>", "<a href='x'>",
    "<a href=>", "[x]: y", "[x]: y 'title'", "'title'", "[x]: y 'ti", "[x]: <y> z", "[x]: javascript:y",
    "[ ]: y", "[^1]: note", "[^1]: [[x]]", "[x]", "[x", "[[a]]: b", "[ ] task", "[x] done", "text ^id",
    "^id", "&amp;", "\\# x", "\u2028", "\x0b", "\u00a0", "\x00", "%%", "%% [[x]] %%", "`code", "a  ",
    "`a|b` | c",
]  # fmt: skip
# What means something only together: lines of one family meet each other in every second body.
_FAMILIES = [
    ["```", "```py", "~~~", "````", "~~~~", "``` `", "text", "# heading", "$$"],
    [
        "| a | b |",
        "|---|---|",
        "a | b",
        "--- | ---",
        ":-:",
        "|-",
        "-|",
        "a\\|b",
        "`a|b` | c",
        "text",
    ],
    ["text", "---", "===", "--", "# heading", "***", "- - -", "-", "    text"],
    [
        "<div>",
        "</div>",
        "<!-- c -->",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "text",
        "<?php",
        "?>",
        "",
    ],
    [
        "[x]: y",
        "[x]: y 'title'",
        "'title'",
        "[x]: y 'ti",
        "[x",
        "]: y",
        "text",
        "[^1]: note",
        "===",
        "",
    ],
    [
        "[x]: <a b> (t)",
        "[//]: # ([[T]])",
        "[x]: <> 't'",
        "[x]: <a",
        "[x]: (t)",
        "(t)",
        "text",
        "===",
        "",
    ],
    ["$$", "$$ x", "x $$", "$$x$$", "text", "```", "- item", ""],
]


@st.composite
def _bodies(draw: st.DrawFn) -> list[str]:
    """Lines of a few marks and contents, so that they meet each other often."""
    marks = draw(st.lists(st.sampled_from(_MARKS), min_size=1, max_size=4))
    among = draw(st.just(_CONTENTS) | st.sampled_from(_FAMILIES))
    contents = draw(st.lists(st.sampled_from(among), min_size=1, max_size=5))
    line = st.builds(
        lambda some, content: "".join(some) + content,
        st.lists(st.sampled_from(marks), max_size=3),
        st.sampled_from(contents),
    )
    return draw(st.lists(line, min_size=1, max_size=10))


# Inline text: whole links and tags, and everything that begins or ends what hides or links.
_WHOLE = st.sampled_from(
    [
        "[[Note]]", "[[ Note |x]]", "![[a.png|40]]", "[[a#b#c]]", "[[#h]]", "[[N\\|d]]", "[x](Note.md)",
        "[x](a%20b#c)", "[](<a b> 't')", "![i](p.png)", "[![i](p.png)](N)", "[x [[In]] y](Out)",
        "[a [b](c) d](e)", "[#t u](v)", "#tag", "#a/b/", "`[[c]]`", "$[[m]]$", "<!-- [[h]] -->",
        "[[[x]]]", "[t](https://x.y/#z)", "\\[[e]]", "[[|b]]", "\n```\n",
    ]
)  # fmt: skip
_PARTS = st.sampled_from(
    [
        "[", "]", "[[", "]]", "![", "![[", "](", "(", ")", "|", "\\|", "\\", "#", "`", "``", "$", "$$",
        "<!--", "-->", "<", ">", "<b>", " ", "\n", "\r\n", "\r", "\n\n", "\n> ", "\n- ", "\n\n    ",
        "%%", "%20", "&amp;", "é", "🚀", "e\u0301", "\u00a0", "\u2028", "\x00", "\ud800", "a", "Note",
        "^id", '"t"', "<a b>", "*", "_", "==", "| a |\n|---|\n| ", "5",
    ]
)  # fmt: skip
_TEXTS = st.lists(_WHOLE | _PARTS, max_size=20).map("".join)


@settings(max_examples=12 * EXAMPLES, deadline=None)
@given(_bodies())
@example(["> - a", "lazy", "", "    > - - -"])
@example(["|-", "|-", "\u00a0"])
@example(["- a | b", "  --- | ---"])
@example(["[a]: b", "'c", "d'", "==="])
@example(["* a", "      # b"])
@example(["-", "", "  a"])
@example(["- a | b", "  --- | ---", "c"])
@example([">>", "a", ">> b"])
@example(["- $$", "  x", "$$"])
def test_the_scanner_finds_the_parsers_blocks_where_it_is_sure_and_loses_no_line(
    lines: list[str],
) -> None:
    scan = Watched(lines)
    found = scan.read()
    assert not scan.sure or found == parse_blocks(lines)
    covered = {number for leaf in found for number in range(leaf.first, leaf.end)}
    assert all(
        number in covered for number, line in enumerate(lines) if not _ONLY_MARKS.fullmatch(line)
    )


def test_the_scanner_is_sure_of_ordinary_notes() -> None:
    note = (
        "# Title\n\nText with [[links]] and #tags,\non two lines.\n\n- item\n\t- nested by a tab\n\t\t- again\n- [ ] task\n"
        "  with more\n\n  and a paragraph\n\n1. one\n2. two\n\n> [!note] A callout\n> with text and | a | table |\n"
        "> - and a list\n\n| a | b |\n| --- | --- |\n| c | d |\n\n```python\n# code\n```\n\n<!-- c -->\n\n$$\nx = y\n$$\n"
        '\n    indented\n\n[^1]: A footnote.\n\n[Title]: Title.md "Title"\n\nLast\n---\n'
    )
    scan = Watched(note.split("\n"))
    found = scan.read()
    assert scan.sure and found == parse_blocks(note.split("\n"))
    assert {leaf.kind for leaf in found} >= {
        "heading",
        "item",
        "quote",
        "table",
        "code",
        "html",
        "math",
        "definition",
    }


@settings(max_examples=5 * EXAMPLES, deadline=None)
@given(_bodies())
@example(["===", "    > ", "==="])
def test_headings_say_what_the_parser_says(lines: list[str]) -> None:
    text = "\n".join(lines)
    scan = Watched(lines)
    scan.read()
    if not scan.sure or "$$" in text or "[^" in text or "\x00" in text:
        return  # math and footnotes are our own rules, and the parser replaces NUL
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    said = [after.content for before, after in pairwise(tokens) if before.type == "heading_open"]
    expected = [
        " ".join(line.strip(SPACES) for line in content.split("\n")).strip(SPACES)
        for content in said
    ]
    assert [heading.text for heading in read_body(text, 0).headings] == expected


_ONLY_MARKS = re.compile(r"(?:[ \t]|>|[-+*](?=[ \t]|$)|[0-9]{1,9}[.)](?=[ \t]|$))*")


def _facts(body: Body) -> tuple[object, ...]:
    return body.headings, body.blocks, body.links, body.tags, body.block_ids


@settings(max_examples=8 * EXAMPLES, deadline=None)
@given(_TEXTS | _bodies().map("\n".join))
def test_every_fact_stands_where_it_says(text: str) -> None:
    body = read_body(text, 0)
    ends = [found.end() for found in re.finditer(r"\r\n?|\n", text)]
    for fact in (*body.headings, *body.blocks, *body.links):
        assert 0 <= fact.start < fact.end <= len(text)
        assert fact.line == 1 + sum(end <= fact.start for end in ends)
    for link in body.links:
        source = text[link.start : link.end]
        assert source.startswith("![" if link.is_embed else "[")
        assert source.endswith("]]" if link.form == "wiki" else ")")
        assert link.start < link.path_start <= link.path_end < link.end
        if link.display_start >= 0:
            assert text[link.display_start : link.display_end] == link.display
    assert all(f"#{name}" in text for name in body.tags)
    for facts in (body.headings, body.blocks, body.links):
        places = [fact.start for fact in facts]
        assert places == sorted(places)


@settings(max_examples=6 * EXAMPLES, deadline=None)
@given(_TEXTS)
@example("[[a|b]] [c](<d e> 't') ![[f#g]]")
@example("| a |\n|---|\n| [[b\\|c]] |")
def test_a_path_spliced_into_a_link_is_what_it_looks_up(text: str) -> None:
    links = read_body(text, 0).links
    for number, link in enumerate(links):
        spliced = text[: link.path_start] + "New/Name" + text[link.path_end :]
        again = read_body(spliced, 0).links
        assert len(again) == len(links) and again[number].target == "New/Name"
        assert (again[number].subpath, again[number].start) == (link.subpath, link.start)
        assert [other.target for k, other in enumerate(again) if k != number] == [
            other.target for k, other in enumerate(links) if k != number
        ]


@settings(max_examples=4 * EXAMPLES, deadline=None)
@given(
    _TEXTS | _bodies().map("\n".join),
    st.sampled_from(["---\na: 1\n---\n", "x: [[no]]\n# no #no\n", "\r\r\n\n"]),
)
def test_a_header_before_the_body_only_moves_it(text: str, header: str) -> None:
    alone, below = read_body(text, 0), read_body(header + text, len(header))
    lines = len(re.findall(r"\r\n?|\n", header))
    assert len(alone.blocks) == len(below.blocks) and alone.block_ids == tuple(
        (i, n - lines) for i, n in below.block_ids
    )
    for here, there in ((alone.links, below.links), (alone.blocks, below.blocks)):
        assert [(fact.start, fact.end, fact.line) for fact in here] == [
            (fact.start - len(header), fact.end - len(header), fact.line - lines) for fact in there
        ]


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(_TEXTS)
def test_a_fence_around_a_text_hides_all_of_it(text: str) -> None:
    body = read_body("`" * 40 + "\n" + text + "\n" + "`" * 40 + "\n", 0)
    assert (body.links, body.tags, body.headings) == ((), (), ())


_LONG = st.lists(
    st.sampled_from(
        [
            "word ", "A sentence. ", "\n", "\n\n", "# Head\n\n", "- item ", "語" * 70, "。", "x" * 900,
            "\u3000", "***\n", "\r\n", "> ", "one two " * 60,
        ]
    ),
    max_size=60,
).map("".join)  # fmt: skip


@settings(max_examples=4 * EXAMPLES, deadline=None)
@given(_LONG | _TEXTS | _bodies().map("\n".join))
@example("one two " * 300)
@example("\u3000\nword")
@example("# A\n\n" + "one two three. " * 60 + "\n\n# B\n\nlast")
def test_passages_cover_every_character_in_order_and_in_size(text: str) -> None:
    passages = cut_passages(text, read_body(text, 0))
    covered = bytearray(len(text))
    for passage in passages:
        covered[passage.start : passage.end] = b"\1" * (passage.end - passage.start)
        said = text[passage.start : passage.end]
        assert said and not said[0].isspace() and not said[-1].isspace()
        whole_word = (
            max((len(word) for word in said.split() if word.isascii()), default=0) > 3 * MAX_TOKENS
        )
        assert whole_word or count_tokens(said) <= 2 * MAX_TOKENS
        assert passage.line == 1 + len(re.findall(r"\r\n?|\n", text[: passage.start]))
    assert all(covered[k] for k, char in enumerate(text) if not char.isspace() and char != "\ufeff")
    starts, ends = [p.start for p in passages], [p.end for p in passages]
    assert starts == sorted(set(starts)) and ends == sorted(set(ends))
