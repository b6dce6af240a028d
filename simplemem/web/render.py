"""A note's Markdown as HTML for the page. HTML in a note is shown, never run; nothing that a note names is fetched;
wikilinks and tags lead to where they lead in the vault."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_CHARACTERS: Final = 400_000  # of a note that are rendered; the rest is a matter for an editor
_WIKILINK: Final = re.compile(r"!?\[\[([^\[\]\n|]{1,400})(?:\|([^\[\]\n]{1,400}))?\]\]")
_TAG: Final = re.compile(r"#([\w/-]*[^\W\d][\w/-]*)")
_COMMENT: Final = re.compile(r"%%.*?(?:%%|\Z)", re.DOTALL)
_CALLOUT: Final = re.compile(r"\[!(\w{1,20})\][+-]?[ \t]*")
_TASK: Final = re.compile(r"\[([ xX])\] ")
_MARK: Final = re.compile(r"(?:^|(?<![ \t])[ \t]++)\^[\w-]++[ \t]*+$", re.MULTILINE)


def link_of(prefix: str, name: str) -> str:
    """Where a note stands on the page."""
    return f"{prefix}/note/{quote(name, safe='/', errors='surrogateescape')}"


def render_note(text: str, prefix: str) -> str:
    """Return the HTML of a note's body."""
    shown = _MARK.sub("", _COMMENT.sub("", text[:MAX_CHARACTERS]))
    html: str = _parser().render(shown, {"prefix": prefix})
    return html


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
        ["table", "strikethrough"]
    )
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.after("escape", "tag", _tag)
    parser.core.ruler.push("outward", _outward)
    return parser


def _wikilink(state: StateInline, silent: bool) -> bool:
    if (found := _WIKILINK.match(state.src, state.pos)) is None:
        return False
    if not silent:
        target, _, place = found[1].partition("#")
        shown = found[2] or (
            f"{target} › {place.lstrip('^')}" if place and target else found[1].lstrip("#^")
        )
        _add_link(
            state,
            link_of(state.env["prefix"], target.strip()) if target.strip() else "#",
            shown,
            "wikilink",
        )
    state.pos = found.end()
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    before = state.src[state.pos - 1 : state.pos]
    if (
        state.src[state.pos] != "#"
        or (before and not before.isspace())
        or not (found := _TAG.match(state.src, state.pos))
    ):
        return False
    if not silent:
        _add_link(state, f"{state.env['prefix']}/tags/{quote(found[1], safe='/')}", found[0], "tag")
    state.pos = found.end()
    return True


def _add_link(state: StateInline, href: str, text: str, kind: str) -> None:
    opening = state.push("link_open", "a", 1)
    opening.attrs = {"href": href, "class": kind}
    state.push("text", "", 0).content = text
    state.push("link_close", "a", -1)


def _outward(state: Any) -> None:
    """Links out of the vault say so and tell nobody where they come from; images and callouts are words."""
    for token in state.tokens:
        for at, each in enumerate(token.children or ()):
            if each.type == "image":
                token.children[at] = _text_of_image(each)
            elif each.type == "link_open" and "class" not in each.attrs:
                each.attrs |= _href(str(each.attrs.get("href", "")), state.env["prefix"])
    for at, token in enumerate(state.tokens):
        if (
            token.type == "list_item_open"
            and (inline := _first_inline(state.tokens, at)) is not None
        ):
            _as_task(inline)
        if (
            token.type == "blockquote_open"
            and (inline := _first_inline(state.tokens, at)) is not None
        ):
            _as_callout(token, inline)


def _text_of_image(image: Token) -> Token:
    said = Token("text", "", 0)
    said.content = f"[image: {image.content or image.attrs.get('src', '')}]"
    return said


def _href(href: str, prefix: str) -> dict[str, str | int | float]:
    if re.match(r"(?:https?|mailto):", href, re.IGNORECASE):
        return {"href": href, "rel": "noopener noreferrer nofollow", "class": "outward"}
    if re.match(r"[a-zA-Z][\w+.-]*:|//", href) or not (target := unquote(href.partition("#")[0])):
        return {"href": "#", "class": "nowhere"}
    return {"href": link_of(prefix, target.removesuffix(".md").lstrip("/")), "class": "wikilink"}


def _first_inline(tokens: Sequence[Token], at: int) -> Token | None:
    return next((each for each in tokens[at + 1 : at + 3] if each.type == "inline"), None)


def _as_task(inline: Token) -> None:
    first = next((each for each in inline.children or () if each.type == "text"), None)
    if first is not None and (found := _TASK.match(first.content)):
        first.content = ("☐ " if found[1] == " " else "☑ ") + first.content[found.end() :]


def _as_callout(quote_: Token, inline: Token) -> None:
    first = next((each for each in inline.children or () if each.type == "text"), None)
    if first is None or (found := _CALLOUT.match(first.content)) is None:
        return
    quote_.attrSet("class", f"callout {found[1].lower()}")
    first.content = first.content[found.end() :] or found[1].capitalize()
