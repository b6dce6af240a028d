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
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from simplemem.note.header import content_start, read_header
from simplemem.note.word_diff import split_into_words

# The notation of Obsidian. Limits and possessive quantifiers keep the time linear in the text.
_WIKILINK: Final = re.compile(r"!?\[\[([^\[\]\n|]{1,400})(?:\|([^\[\]\n]{1,400}))?\]\]")
_TASK: Final = re.compile(r"\[([ xX])\] ")
_WEB_ADDRESS: Final = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_OTHER_ADDRESS: Final = re.compile(r"[a-zA-Z][\w+.-]*:|//")
_STYLES: Final = {"strong_open": "strong", "em_open": "em", "s_open": "struck"}
_CLOSING: Final = ("strong_close", "em_close", "s_close")
_FENCES: Final = ("---", "...")
_STAMP: Final = re.compile(r"(?:created|modified):")
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
    blocks = [
        Block("property", 0, _plain_words(line))
        for line in text[:start].splitlines()
        if line.strip() and line.strip() not in _FENCES and not _STAMP.match(line)
    ]
    tokens = _parser().parse(text[start:])
    return blocks + list(_BlockReader(prefix).read(tokens))


@cache
def _parser() -> MarkdownIt:
    """Return the parser for CommonMark with tables. It is made once per process."""
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False})
    parser.enable(["table", "strikethrough"])
    return parser


class _BlockReader:
    """Guards where in a note the reading is: the lists and quotes that it is in."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lists: list[str] = []
        self._quotes = 0
        self._marker = ""  # of the item of a list whose first words were not read yet
        self._kind = "paragraph"

    def read(self, tokens: Sequence[Token]) -> Iterator[Block]:
        """Yield the blocks of parsed Markdown."""
        cells: list[Word] = []
        is_in_row = False
        for token in tokens:
            self._follow(token)
            if token.type == "tr_open":
                is_in_row = True
                cells = []
            elif token.type == "tr_close":
                is_in_row = False
                yield Block("row", self._depth, tuple(cells))
            elif token.type == "inline":
                words = self._words_of(token)
                if is_in_row:
                    separator = [Word(" | ")] if cells else []
                    cells += [*separator, *words]
                else:
                    yield self._text_block(words)
            elif token.type in ("fence", "code_block"):
                for line in token.content.splitlines():
                    yield Block("code-line", self._depth, _plain_words(line))
            elif token.type == "hr":
                yield Block("rule", self._depth, (Word("———"),))

    @property
    def _depth(self) -> int:
        """How far blocks are indented here."""
        return min(len(self._lists) + self._quotes, _MAX_DEPTH)

    def _follow(self, token: Token) -> None:
        """Remember what a token opens or closes."""
        if token.type in ("bullet_list_open", "ordered_list_open"):
            self._lists.append(token.type)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif token.type == "list_item_open":
            is_ordered = self._lists[-1] == "ordered_list_open"
            self._marker = f"{token.info}. " if is_ordered else "• "
        elif token.type == "blockquote_open":
            self._quotes += 1
        elif token.type == "blockquote_close":
            self._quotes -= 1
        elif token.type == "heading_open":
            self._kind = f"heading-{token.tag[1:]}"
        elif token.type == "paragraph_open":
            self._kind = "quote" if self._quotes else "paragraph"

    def _text_block(self, words: list[Word]) -> Block:
        """Return the block of a heading, a paragraph or an item of a list."""
        kind = self._kind
        if self._marker:
            kind = "list-item"
            words = _with_marker(self._marker, words)
            self._marker = ""
        return Block(kind, self._depth, tuple(words))

    def _words_of(self, token: Token) -> list[Word]:
        """Return the words of a text with its styles and links."""
        words: list[Word] = []
        styles: list[str] = []
        href = ""
        for child in token.children or ():
            if child.type in _STYLES:
                styles.append(_STYLES[child.type])
            elif child.type in _CLOSING:
                styles.pop()
            elif child.type == "link_open":
                href = _address_of_link(str(child.attrs.get("href", "")), self._prefix)
            elif child.type == "link_close":
                href = ""
            elif child.type == "image":
                description = child.content or child.attrs.get("src", "")
                words += _styled(f"[image: {description}]", tuple(styles), href)
            elif child.type == "code_inline":
                words.append(Word(child.content, (*styles, "code"), href))
            elif child.type in ("softbreak", "hardbreak"):
                words.append(Word("\n"))
            elif href:
                words += _styled(child.content, tuple(styles), href)
            else:
                words += self._words_with_wikilinks(child.content, tuple(styles))
        return words

    def _words_with_wikilinks(self, text: str, styles: tuple[str, ...]) -> list[Word]:
        """Return the words of a text, in which each wikilink is a word that leads to its note."""
        words: list[Word] = []
        end = 0
        for match in _WIKILINK.finditer(text):
            words += _styled(text[end : match.start()], styles)
            target, label = match.groups()
            name = target.partition("#")[0].strip()
            href = link_to_note(self._prefix, name) if name else ""
            words.append(Word(label or target, (*styles, "wikilink"), href))
            end = match.end()
        return words + _styled(text[end:], styles)


def link_to_note(prefix: str, name: str) -> str:
    """Return the path of a note on the page. `prefix` is that of the vault."""
    return f"{prefix}/note/{quote(name, safe='/', errors='surrogateescape')}"


def _styled(text: str, styles: tuple[str, ...], href: str = "") -> list[Word]:
    """Return the words of a text that has one style."""
    return [Word(word, styles, href) for word in split_into_words(text)]


def _plain_words(text: str) -> tuple[Word, ...]:
    """Return the words of a text without styles."""
    return tuple(_styled(text, ()))


def _with_marker(marker: str, words: list[Word]) -> list[Word]:
    """Return the words of an item behind its marker, or behind its box if it is a task."""
    text = "".join(word.text for word in words[:4])
    task = _TASK.match(text)
    if task is None:
        return [Word(marker), *words]
    box = "☐ " if task[1] == " " else "☑ "
    return [Word(box), *words[4:]]


def _address_of_link(href: str, prefix: str) -> str:
    """Return the address of a link of Markdown: on the web, of a note, or "" for any other."""
    if _WEB_ADDRESS.match(href):
        return href

    path, _, _ = href.partition("#")
    target = unquote(path)
    if not target or _OTHER_ADDRESS.match(href):
        return ""
    return link_to_note(prefix, target.removesuffix(".md").lstrip("/"))
