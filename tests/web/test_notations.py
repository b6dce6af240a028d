"""What the page makes of Obsidian's notation, and that no note can put anything else into it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from simplemem.web.markdown.context import Authorship, NoteContext, embed_key
from simplemem.web.markdown.parts import PART_CHARACTERS, part_of
from simplemem.web.render import render_note

CONTEXT = NoteContext(
    path="n.md",
    links={
        "n.md": {"Other": "d/Other.md", "p.png": "img/p.png", "gone": None, "n": "n.md"},
        "d/Other.md": {"n": "n.md", "Other": "d/Other.md"},
    },
    texts={
        embed_key("d/Other.md", ""): "# A\n\nthe other note ^x\n\n![[n]]\n\n![[Other]]",
        embed_key("d/Other.md", "#A"): "only *a section*",
        embed_key("n.md", ""): "![[Other]]",
    },
    can_create=True,
)


def rendered(text: str, context: NoteContext | None = CONTEXT) -> str:
    return render_note(text, "/v", context).strip()


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("[[Other#A b|x]]", '<p><a href="/v/note/d/Other#h-a-b" class="wikilink">x</a></p>'),
        ("[[#^One]]", '<p><a href="#b-one" class="wikilink">One</a></p>'),
        (
            "[[gone]]",
            '<p><a href="/v/edit/gone" class="wikilink unresolved"'
            ' title="No note has this name yet: create it">gone</a></p>',
        ),
        (
            "![[p.png|200x100]]",
            '<p><img src="/v/file/img/p.png" alt="p.png" width="200" height="100"'
            ' loading="lazy"></p>',
        ),
        (
            "![a cat|40](p.png)",
            '<p><img src="/v/file/img/p.png" alt="a cat" width="40" loading="lazy"></p>',
        ),
        (
            "![x](https://e.example/x.png)",
            '<p><a href="https://e.example/x.png" rel="noopener noreferrer nofollow"'
            ' class="outward">[image: x]</a></p>',
        ),
        (
            "> [!bug]- Broken\n> deep",
            '<details class="callout callout-danger" data-callout="bug">\n'
            '<summary class="callout-title">Broken</summary>\n<p>deep</p>\n</details>',
        ),
        (
            "> [!note]",
            '<div class="callout callout-info" data-callout="note">\n'
            '<p class="callout-title">Note</p>\n</div>',
        ),
        (
            "|a|b|\n|:-:|--:|",
            "<table>\n<thead>\n<tr>\n"
            '<th class="align-center">a</th>\n<th class="align-right">b</th>\n'
            "</tr>\n</thead>\n</table>",
        ),
        ("It costs $5 and $6.", "<p>It costs $5 and $6.</p>"),
        ("`%%kept%%` %%gone%%.", "<p><code>%%kept%%</code> .</p>"),
        ("```\na\n```\n\n^id", '<pre><code id="b-id">a\n</code></pre>'),
        ("a\n\n- b\n\n^id", '<p>a</p>\n<ul id="b-id">\n<li>b</li>\n</ul>'),
    ],
)
def test_a_notation_is_shown_as_obsidian_means_it(text: str, html: str) -> None:
    assert rendered(text) == html


def test_headings_have_ids_that_differ_and_links_to_themselves() -> None:
    html = rendered("# One *two*\n\n## One two")
    assert re.findall(r'id="([^"]+)"', html) == ["h-one-two", "h-one-two-2"]
    assert re.findall(r'href="#([^"]+)"', html) == ["h-one-two", "h-one-two-2"]


def test_formulas_are_mathml_and_what_cannot_be_read_is_code() -> None:
    html = rendered("$\\frac{a}{b}$\n\n$$\nx^2 < 3\n$$\n\n$" + "{" * 2000 + "x$")
    assert '<math display="inline"><mrow><mfrac>' in html
    assert '<math display="block">' in html and "<mo>&lt;</mo>" in html
    assert '<code class="formula">{{{' in html


def test_formulas_bring_no_links_or_styles() -> None:
    html = rendered("$\\href{javascript:alert(1)}{x} \\style{color:red}{y} \\text{<img src=x>}$")
    assert "javascript" not in html and "style" not in html and "<img" not in html


def test_a_note_is_embedded_once_and_never_in_itself() -> None:
    html = rendered("![[Other]]")
    assert html.count('<div class="embed">') == 1
    assert "the other note" in html and "^x" not in html and 'id="' not in html
    assert '<a href="/v/note/n" class="wikilink">n</a>' in html
    section = rendered("![[Other#A]]")
    assert "only <em>a section</em>" in section
    assert '<div class="embed">' not in rendered("![[n]]")


def test_footnotes_of_a_note_and_of_its_embeds_have_ids_of_their_own() -> None:
    text = "one[^1] and ^[inline *two*]\n\n![[Other]]\n\n[^1]: first"
    context = NoteContext(
        path="n.md",
        links={"n.md": {"Other": "o.md"}},
        texts={embed_key("o.md", ""): "three[^1]\n\n[^1]: third"},
    )
    html = rendered(text, context)
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == 6 and len(set(ids)) == 6
    for target in re.findall(r'href="#([^"]+)"', html):
        assert target in ids


def test_blocks_of_one_author_are_together_below_their_name() -> None:
    authorship = (
        Authorship(11, "agent", "claude", "2026-01-02T03:04:05Z"),
        Authorship(14, "human", "ida <b>", "2026-02-02T03:04:05Z"),
    )
    context = NoteContext(first_line=11, authorship=authorship)
    html = rendered("one\n\ntwo\nthree\n\nfour", context)
    assert html.count('<div class="written">') == html.count("</div>") == 3
    assert '<p class="author author-agent">claude (agent) <time' in html
    assert "ida &lt;b&gt; (person), claude (agent)" in html


def test_the_parts_of_a_long_note_are_its_text_and_end_between_blocks() -> None:
    code = "```\n" + "code\n\n" * 2000 + "```\n\n"
    text = "A paragraph[^f].\n\n" * 3000 + code + "The end.\n\n" * 4000 + "[^f]: A footnote\n"
    count = part_of(text, 1).count
    parts = [part_of(text, number) for number in range(1, count + 1)]
    assert count > 2 and "".join(part.text for part in parts) == text
    assert all(part.text.count("```") in (0, 2) for part in parts)
    assert parts[0].definitions == "[^f]: A footnote" and parts[-1].definitions == ""
    assert part_of(text, 99).number == count
    lines = [text.split("\n")[part.first_line] for part in parts]
    assert lines == [part.text.split("\n")[0] for part in parts]
    assert len(part_of("x" * (PART_CHARACTERS * 30), 1).text) < PART_CHARACTERS * 11


PAYLOADS = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>", "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>", "<body onload=alert(1)>", "<a href=javascript:alert(1)>x</a>",
    "<math><mtext><img src=x onerror=alert(1)></mtext></math>", "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)>", "<object data=javascript:alert(1)>", "<embed src=javascript:alert(1)>",
    "<form action=javascript:alert(1)><button>x</button></form>", "<link rel=stylesheet href=//evil.example>",
    "<meta http-equiv=refresh content=0;url=//evil.example>", "<base href=//evil.example/>", "<!--><script>alert(1)</script>",
    "</div><script>alert(1)</script>", "<style>@import '//evil.example'</style>", "<p style=background:url(//evil.example)>",
    "[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](java&#x0a;script:alert(1))", "[a](&#106;avascript:alert(1))",
    "[a](\x01javascript:alert(1))", "[a](data:text/html,<script>alert(1)</script>)", "[a](data:image/svg+xml,<svg onload=alert(1)>)",
    "[a](vbscript:msgbox(1))", "[a](file:///etc/passwd)", "[a](<javascript:alert(1)>)", "<javascript:alert(1)>",
    "[a]: javascript:alert(1)\n\n[a]", "[a](http://x\"onmouseover=alert(1))", "[a](x 'y\" onmouseover=alert(1)')",
    "![a](javascript:alert(1))", "![a\" onerror=alert(1)](p.png)", "![a](data:image/png;base64,AAAA)", "![a](//evil.example/x.png)",
    "![[p.png|\" onerror=alert(1) x=\"]]", "![[\" onerror=\"alert(1)]]", "![[javascript:alert(1)]]", "[[javascript:alert(1)]]",
    "[[\"><script>alert(1)</script>]]", "[[x|<script>alert(1)</script>]]", "[[x#\"><img src=x onerror=alert(1)>]]",
    "![[Other#\"><script>alert(1)</script>]]", "#tag\"><script>alert(1)</script>", "text ^id\"><script>alert(1)</script>",
    "> [!tip\" onclick=alert(1)] x", "> [!tip]- <script>alert(1)</script>\n> x", "- [x] <img src=x onerror=alert(1)>",
    "- [\"] onclick=alert(1)", "# \"><img src=x onerror=alert(1)>", "# <script>alert(1)</script>",
    "$\\href{javascript:alert(1)}{x}$", "$\\text{</mtext><script>alert(1)</script>}$", "$\\color{\"><script>alert(1)</script>}{x}$",
    "$$\n\\style{background:url(//evil.example)}{x}\n$$", "$<img src=x onerror=alert(1)>$", "$\\class{x\" onclick=alert(1)}{y}$",
    "a[^\"><script>]\n\n[^\"><script>]: x", "^[<script>alert(1)</script>]", "[^1]\n\n[^1]: [x](javascript:alert(1))",
    "```mermaid\n</code></pre><script>alert(1)</script>\n```", "```\"><script>\nx\n```", "```js onload=alert(1)\nx\n```",
    "| <script>alert(1)</script> |\n|---|\n| [a](javascript:alert(1)) |", "%%<script>%%alert(1)<script>", "&lt;script&gt;alert(1)&lt;/script&gt;",
)  # fmt: skip

SAFE_ELEMENTS = frozenset(
    """
    a blockquote br caption code del details div em h1 h2 h3 h4 h5 h6 hr img input li math mfrac mi mn mo
    mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder ol p pre
    s section span strong summary sup table tbody td th thead time tr ul
    """.split()
)


class Inspector(HTMLParser):
    """Fails for an element, attribute or address that could run a script or fetch from elsewhere."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SAFE_ELEMENTS, tag
        for name, value in attrs:
            assert not name.startswith("on") and name not in ("style", "srcdoc", "action"), name
            if name == "href":
                assert re.match(r"/v/|#|https?://|mailto:", value or ""), value
            if name == "src":
                assert (value or "").startswith("/v/file/"), value

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("context", [None, CONTEXT], ids=["alone", "in a vault"])
def test_no_payload_becomes_an_element_or_address_of_its_own(
    payload: str, context: NoteContext | None
) -> None:
    for text in (payload, f"> {payload}", f"- {payload}", f"x {payload} y\n\n{payload}"):
        Inspector().feed(rendered(text, context))
    embedding = NoteContext(
        path="n.md", links={"n.md": {"o": "o.md"}}, texts={embed_key("o.md", ""): payload}
    )
    Inspector().feed(rendered("![[o]]", embedding))
