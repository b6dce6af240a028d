"""Splits the Markdown of a note into blocks of words, so that two texts can be compared.

A block is what a reader sees as one: a property, a heading, a paragraph, an item of a list, a row
of a table, or a line of code. Its words are those that are displayed, each with its style and the
address that it links to. HTML in a note is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from simplemem.note.header import content_start, read_header
from simplemem.note.word_diff import split_into_words
from simplemem.web.markdown.addresses import OTHER_ADDRESS, WEB_ADDRESS, WIKILINK, link_of
from simplemem.web.markdown.callouts import MARKER as CALLOUT_MARKER

_TASK: Final = re.compile(r"\[([ xX])\] ")
# The CSS class of a style, by the token that opens it; and the tokens that close a style.
_STYLES: Final = {"strong_open": "strong", "em_open": "em", "s_open": "struck"}
_STYLE_ENDS: Final = ("strong_close", "em_close", "s_close")
_PROPERTY_FENCES: Final = ("---", "...")  # lines before and after the properties
_TIME_PROPERTY: Final = re.compile(r"(?:created|modified):")
_WORDS_OF_TASK_MARK: Final = 4  # `[`, `x`, `]` and a space
_MAX_DEPTH: Final = 6  # of lists and quotes that are shown as indentation


class Word(NamedTuple):
    """A word, or the spaces or a sign between two words, as it is displayed.

    `styles` are names of CSS classes. `href` is the address that it links to, "" for none.
    """

    text: str
    styles: tuple[str, ...] = ()
    href: str = ""

    @property
    def key(self) -> str:
        """A text that is equal for two words that look alike and lead to the same address."""
        return "\1".join((self.text, *self.styles, self.href))


class Block(NamedTuple):
    """A part of a note that a reader sees as one. `kind` is the name of its CSS class.

    `depth` counts the lists and quotes that it is in.
    """

    kind: str
    depth: int
    words: tuple[Word, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its words, after one for its kind: blocks with equal keys look alike."""
        return (f"\1{self.kind}\1{self.depth}", *(word.key for word in self.words))


def split_into_blocks(text: str, prefix: str) -> list[Block]:
    """Return the blocks of a note. `prefix` is that of the vault, for links.

    The properties that say when the note was created and modified are left out, because they say
    nothing about a change.
    """
    start = content_start(text, read_header(text))
    properties = _property_blocks(text[:start])
    tokens = _parser().parse(text[start:])
    blocks = _BlockReader(prefix).read(tokens)
    return [*properties, *blocks]


def _property_blocks(header: str) -> Iterator[Block]:
    """Yield a block for each line of the properties, but for the times of the note."""
    for line in header.splitlines():
        is_empty = not line.strip()
        is_fence = line.strip() in _PROPERTY_FENCES
        is_time = _TIME_PROPERTY.match(line) is not None
        if not (is_empty or is_fence or is_time):
            yield Block("property", 0, _plain_words(line))


@cache
def _parser() -> MarkdownIt:
    """Return the parser for CommonMark with tables. It is made once per process."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable(["table", "strikethrough"])
    return parser


class _BlockReader:
    """Reads the blocks of one note. Guards the lists, quotes and row that the next token is in."""

    def __init__(self, prefix: str) -> None:
        """Begin at the start of a note. `prefix` is that of the vault, for links."""
        self._prefix = prefix
        self._open_lists: list[str] = []  # the types of the tokens that opened them
        self._open_quotes = 0
        self._begins_quote = False  # whether the next block is the first one of its quote
        self._marker = ""  # of the list item whose first text was not read yet
        self._kind = "paragraph"  # of the block that the next text belongs to
        self._cells: list[list[Word]] | None = None  # of the row of a table; None outside of one

    def read(self, tokens: Sequence[Token]) -> Iterator[Block]:
        """Yield the blocks of parsed Markdown."""
        for token in tokens:
            self._follow_nesting(token)
            self._follow_kind(token)
            for block in self._blocks_of(token):
                yield block
                self._begins_quote = False

    def _follow_nesting(self, token: Token) -> None:
        """Note which list or quote a token opens or closes, and which row it opens."""
        if token.type in ("bullet_list_open", "ordered_list_open"):
            self._open_lists.append(token.type)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self._open_lists.pop()
        elif token.type == "blockquote_open":
            self._open_quotes += 1
            self._begins_quote = True
        elif token.type == "blockquote_close":
            self._open_quotes -= 1
            self._begins_quote = False
        elif token.type == "tr_open":
            self._cells = []

    def _follow_kind(self, token: Token) -> None:
        """Note the kind of the block that a token opens, and the marker of an item of a list.

        The marker is for the first text of the item. An item without one, which is empty or only
        code, ends with its marker unused.
        """
        if token.type == "heading_open":
            level = token.tag.removeprefix("h")
            self._kind = f"heading-{level}"
        elif token.type == "paragraph_open":
            self._kind = "quote" if self._open_quotes else "paragraph"
        elif token.type == "list_item_open":
            is_ordered = self._open_lists[-1] == "ordered_list_open"
            self._marker = f"{token.info}. " if is_ordered else "• "
        elif token.type == "list_item_close":
            self._marker = ""

    def _blocks_of(self, token: Token) -> Iterator[Block]:
        """Yield the blocks that end with a token: one per line of code, else one or none."""
        if token.type == "inline":
            words = self._words_of(token)
            if self._cells is None:
                yield self._text_block(words)
            else:
                self._cells.append(words)
        elif token.type == "tr_close":
            yield self._end_row()
        elif token.type in ("fence", "code_block"):
            language = token.info.strip()
            if language:
                yield Block("code-line", self._depth, _plain_words(f"[{language}]"))
            for line in token.content.splitlines():
                yield Block("code-line", self._depth, _plain_words(line))
        elif token.type == "hr":
            yield Block("rule", self._depth, (Word("———"),))

    @property
    def _depth(self) -> int:
        """How far blocks are indented here."""
        depth = len(self._open_lists) + self._open_quotes
        return min(depth, _MAX_DEPTH)

    def _end_row(self) -> Block:
        """Return the block of the row that ends, with a bar between its cells."""
        words: list[Word] = []
        for cell in self._cells or ():
            if words:
                words.append(Word(" | "))
            words += cell
        self._cells = None
        return Block("row", self._depth, tuple(words))

    def _text_block(self, words: list[Word]) -> Block:
        """Return the block of a heading, a paragraph or an item of a list.

        Only the first text of an item is a list item, with the marker before it.
        """
        if not self._marker:
            if self._begins_quote:
                words = _with_callout_type(words)
            return Block(self._kind, self._depth, tuple(words))

        words = _with_marker(self._marker, words)
        self._marker = ""
        return Block("list-item", self._depth, tuple(words))

    def _words_of(self, token: Token) -> list[Word]:
        """Return the words of a text with its styles and links."""
        words: list[Word] = []
        styles: list[str] = []
        href = ""
        for child in token.children or ():
            if child.type in _STYLES:
                styles.append(_STYLES[child.type])
            elif child.type in _STYLE_ENDS:
                styles.pop()
            elif child.type == "link_open":
                destination = str(child.attrs.get("href", ""))
                href = _address_of_link(destination, self._prefix)
            elif child.type == "link_close":
                href = ""
            else:
                words += self._displayed_words(child, tuple(styles), href)
        return words

    def _displayed_words(self, token: Token, styles: tuple[str, ...], href: str) -> list[Word]:
        """Return the words of a token that is displayed, within styles and perhaps a link."""
        if token.type == "image":
            # The address is shown too, because a change of it alone would not be seen.
            description = f"{token.content} {token.attrs.get('src', '')}".strip()
            return _styled(f"[image: {description}]", styles, href)
        if token.type == "code_inline":
            return [Word(token.content, (*styles, "code"), href)]
        if token.type in ("softbreak", "hardbreak"):
            return [Word("\n")]
        if href:
            return _styled(token.content, styles, href)
        return self._words_with_wikilinks(token.content, styles)

    def _words_with_wikilinks(self, text: str, styles: tuple[str, ...]) -> list[Word]:
        """Return the words of a text, in which each wikilink is a word that leads to its note."""
        words: list[Word] = []
        position = 0
        for match in WIKILINK.finditer(text):
            text_before = text[position : match.start()]
            words += _styled(text_before, styles)
            words.append(self._word_of_wikilink(match, styles))
            position = match.end()

        rest = text[position:]
        words += _styled(rest, styles)
        return words

    def _word_of_wikilink(self, match: re.Match[str], styles: tuple[str, ...]) -> Word:
        """Return a wikilink as one word. It leads nowhere if the link names no note.

        An embed, whose label may be the width of a picture, has the name of what it embeds.
        """
        link = match["link"]
        name = link.partition("#")[0].strip()
        href = link_of(self._prefix, name) if name else ""
        label = match["label"]
        if match["mark"]:
            text = f"[embedded: {link}, {label}]" if label else f"[embedded: {link}]"
        else:
            text = label or link
        return Word(text, (*styles, "wikilink"), href)


def _styled(text: str, styles: tuple[str, ...], href: str = "") -> list[Word]:
    """Return the words of a text that has one style."""
    return [Word(word, styles, href) for word in split_into_words(text)]


def _plain_words(text: str) -> tuple[Word, ...]:
    """Return the words of a text without styles."""
    return tuple(_styled(text, ()))


def _with_callout_type(words: list[Word]) -> list[Word]:
    """Return the words of the first text of a quote, with a callout's type instead of its mark.

    The words of other quotes stay as they are.
    """
    text = "".join(word.text for word in words)
    callout = CALLOUT_MARKER.match(text)
    if callout is None:
        return words

    rest = list(words)
    mark_length = callout.end()
    while mark_length > 0:
        mark_length -= len(rest.pop(0).text)
    if mark_length < 0:  # the mark ends within a word
        return words
    fold = " (folded)" if callout["fold"] == "-" else ""
    return [Word(f"{callout['type']}{fold}: ", ("callout-type",)), *rest]


def _with_marker(marker: str, words: list[Word]) -> list[Word]:
    """Return the words of an item of a list after its marker.

    A task has a box instead of its marker and of its brackets.
    """
    beginning = "".join(word.text for word in words[:_WORDS_OF_TASK_MARK])
    task = _TASK.match(beginning)
    if task is None:
        return [Word(marker), *words]

    box = "☐ " if task[1] == " " else "☑ "
    return [Word(box), *words[_WORDS_OF_TASK_MARK:]]


def _address_of_link(href: str, prefix: str) -> str:
    """Return the address of a link of Markdown: on the web, of a note, or "" for any other."""
    if WEB_ADDRESS.match(href):
        return href
    if OTHER_ADDRESS.match(href):
        return ""

    path, _, _ = href.partition("#")
    target = unquote(path)
    if not target:
        return ""
    name = target.removesuffix(".md").lstrip("/")
    return link_of(prefix, name)
