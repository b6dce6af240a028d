"""Wikilinks, tags, links of Markdown, images and the place of embeds within text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from simplemem.web.markdown.addresses import (
    OTHER_ADDRESS,
    WEB_ADDRESS,
    WIKILINK,
    Destination,
    file_url,
    label_of_link,
)
from simplemem.web.markdown.state import Environment, rendering_of
from simplemem.web.markdown.tokens import text_token

EMBED: Final = "embed"
"""The type of the token of an embed. Its `meta` has `target`, `subpath` and `label`."""

_TAG: Final = re.compile(r"#([\w/-]*[^\W\d][\w/-]*)")
# At the end of the text of an image: its width, or width and height, in pixels.
_SIZE: Final = re.compile(r"(?P<width>[0-9]{1,4})(?:x(?P<height>[0-9]{1,4}))?")

Attributes = dict[str, str | int | float]
"""The attributes of an element of HTML, as markdown-it has them."""


def add_rules(parser: MarkdownIt) -> None:
    """Add the notation of this module to a parser."""
    parser.inline.ruler.before("link", "wikilink", _parse_wikilink)
    parser.inline.ruler.after("escape", "tag", _parse_tag)
    parser.core.ruler.push("links", _change_links)
    parser.add_render_rule(EMBED, _render_embed)


# --- wikilinks and tags


def _parse_wikilink(state: StateInline, silent: bool) -> bool:
    """Parse a wikilink or an embed at the position of `state`, as a rule of markdown-it.

    Returns whether there is one, and moves the position behind it. If `silent`, adds no tokens.
    """
    match = WIKILINK.match(state.src, state.pos)
    if match is None:
        return False

    if not silent:
        link = match["link"]
        label = match["label"] or ""
        target, hash_sign, rest = link.partition("#")
        subpath = (hash_sign + rest).strip()
        if match["mark"]:
            token = state.push(EMBED, "", 0)
            token.meta = {"target": target.strip(), "subpath": subpath, "label": label}
        else:
            destination = rendering_of(state.env).destination(target, subpath)
            _add_link(state, destination, label or label_of_link(link))

    state.pos = match.end()
    return True


def _parse_tag(state: StateInline, silent: bool) -> bool:
    """Parse a tag at the position of `state`, as a rule of markdown-it.

    A tag begins a line or follows a space. Returns whether there is one, and moves the position
    behind it. If `silent`, adds no tokens.
    """
    position = state.pos
    if state.src[position] != "#":
        return False

    previous = state.src[position - 1 : position]  # "" at the beginning
    if previous and not previous.isspace():
        return False

    match = _TAG.match(state.src, position)
    if match is None:
        return False

    if not silent:
        prefix = rendering_of(state.env).prefix
        href = f"{prefix}/tags/{quote(match[1], safe='/')}"
        _add_link(state, Destination(href, "tag"), match[0])

    state.pos = match.end()
    return True


def _add_link(state: StateInline, destination: Destination, text: str) -> None:
    """Add the tokens of a link. The renderer escapes the text and the attributes."""
    opening = state.push("link_open", "a", 1)
    opening.attrs = _attributes_of(destination)
    content = state.push("text", "", 0)
    content.content = text
    state.push("link_close", "a", -1)


def _attributes_of(destination: Destination) -> Attributes:
    """Return the attributes of a link that leads to a destination."""
    attributes: Attributes = {"href": destination.href, "class": destination.css_class}
    if destination.title:
        attributes["title"] = destination.title
    return attributes


# --- links and images of Markdown


def _change_links(state: StateCore) -> None:
    """Give links of Markdown their address on the page, and make images of the vault embeds.

    Links with a class come from the rules above, and stay. An image of another host becomes a link,
    so that nothing is fetched from there.
    """
    for token in state.tokens:
        if token.children:
            token.children = _changed_children(token.children, state.env)


def _changed_children(children: Sequence[Token], environment: Environment) -> list[Token]:
    """Return the tokens of a text, with links and images changed."""
    changed: list[Token] = []
    for child in children:
        if child.type == "image":
            changed += _tokens_of_image(child)
            continue
        if child.type == "link_open" and "class" not in child.attrs:
            href = str(child.attrs.get("href", ""))
            child.attrs |= _link_attributes(href, environment)
        changed.append(child)
    return changed


def _tokens_of_image(image: Token) -> list[Token]:
    """Return what the page shows of an image: an embed, a link to the web, or a text."""
    source = str(image.attrs.get("src", ""))
    text = text_token(f"[image: {image.content or source}]")

    if WEB_ADDRESS.match(source):
        opening = Token("link_open", "a", 1)
        opening.attrs = _outward_attributes(source)
        return [opening, text, Token("link_close", "a", -1)]

    path, _, _ = source.partition("#")
    if not path or OTHER_ADDRESS.match(source):
        return [text]

    embed = Token(EMBED, "", 0)
    embed.meta = {"target": unquote(path), "subpath": "", "label": image.content}
    return [embed]


def _link_attributes(href: str, environment: Environment) -> Attributes:
    """Return the attributes of a link: to the web, to a note, or else to nowhere (`#`).

    Links to nowhere are those with another scheme or a host, and those without a path.
    """
    if WEB_ADDRESS.match(href):
        return _outward_attributes(href)

    path, hash_sign, fragment = href.partition("#")
    target = unquote(path)
    if OTHER_ADDRESS.match(href) or not (target or fragment):
        return {"href": "#", "class": "nowhere"}

    subpath = hash_sign + unquote(fragment)
    rendering = rendering_of(environment)
    return _attributes_of(rendering.destination(target, subpath))


def _outward_attributes(href: str) -> Attributes:
    """Return the attributes of a link to the web, with which the page is not revealed there."""
    return {"href": href, "rel": "noopener noreferrer nofollow", "class": "outward"}


# --- embeds within text


def _render_embed(
    _renderer: RendererHTML,
    tokens: Sequence[Token],
    position: int,
    _options: OptionsDict,
    environment: Environment,
) -> str:
    """Return the HTML of an embed: an image of the vault, or a link to what it names."""
    meta = tokens[position].meta
    rendering = rendering_of(environment)
    destination = rendering.destination(meta["target"], meta["subpath"])
    if destination.is_image:
        source = file_url(rendering.prefix, destination.path)
        return _image(source, destination.path, meta["label"])
    return link_to_embedded(destination, meta)


def link_to_embedded(destination: Destination, meta: dict[str, Any]) -> str:
    """Return the HTML of a link to what an embed names. `meta` is that of the token."""
    label = meta["label"] or label_of_link(meta["target"] + meta["subpath"])
    attributes = ""
    for name, value in _attributes_of(destination).items():
        attributes += f' {name}="{escapeHtml(str(value))}"'
    return f"<a{attributes}>{escapeHtml(label)}</a>"


def _image(source: str, path: str, label: str) -> str:
    """Return the HTML of an image of the vault. `label` is its text, its size, or `text|size`."""
    text, _, last_part = label.rpartition("|")
    size = _SIZE.fullmatch(last_part.strip())
    attributes = ""
    if size is None:
        text = label
    else:
        attributes = f' width="{size["width"]}"'
        if size["height"]:
            attributes += f' height="{size["height"]}"'

    description = text.strip() or path.rpartition("/")[2]
    return (
        f'<img src="{escapeHtml(source)}" alt="{escapeHtml(description)}"'
        f'{attributes} loading="lazy">'
    )
