"""Renders the Markdown of a note as HTML for the page.

HTML in a note is shown as text, and nothing that a note names is fetched. Wikilinks and tags lead
to the page of their note or tag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

MAX_CHARACTERS: Final = 400_000  # of a note that are rendered
# The notation of Obsidian. Limits and possessive quantifiers keep the time linear in the text.
_WIKILINK: Final = re.compile(r"!?\[\[([^\[\]\n|]{1,400})(?:\|([^\[\]\n]{1,400}))?\]\]")
_TAG: Final = re.compile(r"#([\w/-]*[^\W\d][\w/-]*)")
_COMMENT: Final = re.compile(r"%%.*?(?:%%|\Z)", re.DOTALL)
_CALLOUT: Final = re.compile(r"\[!(\w{1,20})\][+-]?[ \t]*")
_TASK: Final = re.compile(r"\[([ xX])\] ")
_BLOCK_ID: Final = re.compile(r"(?:^|(?<![ \t])[ \t]++)\^[\w-]++[ \t]*+$", re.MULTILINE)
_WEB_ADDRESS: Final = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_OTHER_ADDRESS: Final = re.compile(r"[a-zA-Z][\w+.-]*:|//")

Attributes = dict[str, str | int | float]


def link_of(prefix: str, name: str) -> str:
    """Return the path of a note on the page. `prefix` is that of the vault."""
    return f"{prefix}/note/{quote(name, safe='/', errors='surrogateescape')}"


def render_note(text: str, prefix: str) -> str:
    """Return the HTML of the first 400,000 characters of a note's body.

    It lacks comments and block ids. `prefix` is that of the vault, for links.
    """
    beginning = text[:MAX_CHARACTERS]
    without_comments = _COMMENT.sub("", beginning)
    text_only = _BLOCK_ID.sub("", without_comments)
    html: str = _parser().render(text_only, {"prefix": prefix})
    return html


@cache
def _parser() -> MarkdownIt:
    """Return the parser for CommonMark with tables, and with the notation of Obsidian.

    Its environment needs `prefix`, that of the vault. It is made once per process.
    """
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _parse_wikilink)
    parser.inline.ruler.after("escape", "tag", _parse_tag)
    parser.core.ruler.push("obsidian", _change_tokens)
    return parser


# --- rules for inline text


def _parse_wikilink(state: StateInline, silent: bool) -> bool:
    """Parse a wikilink at the position of `state`, as a rule of markdown-it.

    Returns whether there is one, and moves the position behind it. If `silent`, adds no tokens.
    """
    match = _WIKILINK.match(state.src, state.pos)
    if match is None:
        return False

    if not silent:
        link, label = match.groups()
        target, _, _ = link.partition("#")
        name = target.strip()
        href = "#"
        if name:
            href = link_of(state.env["prefix"], name)
        text = label or _label_of_link(link)
        _add_link(state, href, text, "wikilink")

    state.pos = match.end()
    return True


def _label_of_link(link: str) -> str:
    """Return the text of a wikilink without a label: `Note › Heading` for `Note#Heading`.

    `link` is what the brackets contain. A link within its own note has only the heading.
    """
    target, _, heading = link.partition("#")
    if target and heading:
        return f"{target} › {heading.lstrip('^')}"
    return link.lstrip("#^")


def _parse_tag(state: StateInline, silent: bool) -> bool:
    """Parse a tag at the position of `state`, as a rule of markdown-it.

    A tag begins a line or follows a space. Returns whether there is one, and moves the position
    behind it. If `silent`, adds no tokens.
    """
    position = state.pos
    if state.src[position] != "#":
        return False

    previous = state.src[position - 1 : position]
    if previous and not previous.isspace():
        return False

    match = _TAG.match(state.src, position)
    if match is None:
        return False

    if not silent:
        tag = match[1]
        prefix = state.env["prefix"]
        href = f"{prefix}/tags/{quote(tag, safe='/')}"
        _add_link(state, href, match[0], "tag")

    state.pos = match.end()
    return True


def _add_link(state: StateInline, href: str, text: str, css_class: str) -> None:
    """Add the tokens of a link. The renderer escapes the text and the attributes."""
    opening = state.push("link_open", "a", 1)
    opening.attrs = {"href": href, "class": css_class}
    content = state.push("text", "", 0)
    content.content = text
    state.push("link_close", "a", -1)


# --- changes of the parsed tokens


def _change_tokens(state: StateCore) -> None:
    """Change the links, images, tasks and callouts of a parsed note to what the page shows."""
    prefix = state.env["prefix"]
    for token in state.tokens:
        _change_children(token, prefix)

    for position, token in enumerate(state.tokens):
        if token.type not in ("list_item_open", "blockquote_open"):
            continue
        text = _first_text(state.tokens, position)
        if text is None:
            continue
        if token.type == "list_item_open":
            _change_task(text)
        else:
            _change_callout(token, text)


def _change_children(token: Token, prefix: str) -> None:
    """Replace images by their text, and give links of Markdown their address on the page.

    Changes the children of `token`. Links with a class come from the rules above, and stay.
    """
    children = token.children or []
    for position, child in enumerate(children):
        if child.type == "image":
            children[position] = _text_of_image(child)
        elif child.type == "link_open" and "class" not in child.attrs:
            href = str(child.attrs.get("href", ""))
            child.attrs |= _link_attributes(href, prefix)


def _text_of_image(image: Token) -> Token:
    """Return a text in place of an image: `[image: ...]` with its description or address."""
    description = image.content or image.attrs.get("src", "")
    text = Token("text", "", 0)
    text.content = f"[image: {description}]"
    return text


def _link_attributes(href: str, prefix: str) -> Attributes:
    """Return the attributes of a link: to the web, to a note, or else to nowhere (`#`).

    Links to nowhere are those without a path, and those with another scheme or a host.
    """
    if _WEB_ADDRESS.match(href):
        return {"href": href, "rel": "noopener noreferrer nofollow", "class": "outward"}

    path, _, _ = href.partition("#")
    target = unquote(path)
    if not target or _OTHER_ADDRESS.match(href):
        return {"href": "#", "class": "nowhere"}

    name = target.removesuffix(".md").lstrip("/")
    return {"href": link_of(prefix, name), "class": "wikilink"}


def _first_text(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the first text of the block that opens at a position, or None.

    It is looked for in the two tokens after the position: the opening of a paragraph and its text.
    """
    for token in tokens[position + 1 : position + 3]:
        if token.type != "inline":
            continue
        for child in token.children or ():
            if child.type == "text":
                return child
        return None
    return None


def _change_task(text: Token) -> None:
    """Replace the brackets at the beginning of a task by a box. Other texts stay as they are."""
    match = _TASK.match(text.content)
    if match is None:
        return

    box = "☑ "
    if match[1] == " ":
        box = "☐ "
    text.content = box + text.content[match.end() :]


def _change_callout(block_quote: Token, text: Token) -> None:
    """Give a callout its CSS class, and as its heading the title or else the type.

    `text` is the first text of the block quote. A block quote that is no callout stays as it is.
    """
    match = _CALLOUT.match(text.content)
    if match is None:
        return

    callout_type = match[1]
    title = text.content[match.end() :]
    block_quote.attrSet("class", f"callout {callout_type.lower()}")
    text.content = title or callout_type.capitalize()
