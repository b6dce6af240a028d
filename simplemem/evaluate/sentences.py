"""The sentences of a note, and when two of them say nearly the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simplemem.note.note import Note
from simplemem.note.words import content_words, words_in_order, words_of

_PROSE = frozenset({"paragraph", "item", "quote", "heading", "definition"})
_END = re.compile(r"(?<=[.!?…])[\"'’”)\]*_]*\s+|(?<=[。！？])\s*")
_MARKS = re.compile(r"[ \t]*(?:(?:>|[-+*]|[0-9]{1,9}[.)]|#{1,6})[ \t]+)*(?:\[.\][ \t]+)?")
_LINE = re.compile(r"[^\r\n]+")
# Bounded, and none runs over the beginning of another: a text that only ever begins links is read once (F46).
_EMBED = re.compile(r"!\[\[[^\[\]]*+\]\]|!\[[^\[\]]*+\]\([^)]{0,1000}\)")
_WIKILINK = re.compile(r"\[\[(?:[^\[\]|]*+\|)?([^\[\]]*+)\]\]")
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]*+)\]\([^)\s]{0,1000}+(?:\s{1,100}+[^)]{0,300})?\)")
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)|==|~~|\^[A-Za-z0-9-]+\s*$")
_SHARE = 0.6
_LONG = 5  # stems that are more than a name


def sentences(note: Note) -> Iterator[tuple[str, int, int]]:
    """Every sentence of the body with the kind of its block: (kind, start, end). Tables and code go by lines."""
    text = note.text
    for block in note.body.blocks:
        if block.kind not in _PROSE:
            for line in _LINE.finditer(text, block.start, block.end):
                yield block.kind, line.start(), line.end()
            continue
        marks = _MARKS.match(text, block.start, block.end)
        at = marks.end() if marks is not None else block.start
        for end in _END.finditer(text, at, block.end):
            if end.end() > at:
                yield block.kind, at, end.end()
            at = end.end()
        if at < block.end:
            yield block.kind, at, block.end


def plain(sentence: str) -> str:
    """A sentence as a person would say it: links by what they show, no embeds, no emphasis, one line."""
    sentence = _MARKDOWN_LINK.sub(r"\1", _WIKILINK.sub(r"\1", _EMBED.sub("", sentence)))
    return " ".join(_EMPHASIS.sub("", sentence).replace(" > ", " ").split())


def key_of(text: str) -> str:
    """What two texts have in common that are the same question."""
    return " ".join(words_in_order(plain(text)))


def stems_of(text: str) -> frozenset[str]:
    """The beginnings of the words that carry meaning."""
    return frozenset(word[:5] for word in content_words(words_of(text)) if len(word) > 2 or not word.isascii())


def overlaps(sentence: frozenset[str], question: frozenset[str]) -> bool:
    """Whether a sentence gives a question away: they share six in ten of the words of either. Where one of them is only a
    few words, of both: a sentence that has both words of a title is no repetition of the title, nor a short item that has
    two words of a long description."""
    shared = len(sentence & question)
    if shared < 2:
        return bool(shared) and sentence == question
    of_question, of_sentence = shared >= _SHARE * len(question), shared >= _SHARE * len(sentence)
    if of_question and of_sentence:
        return True
    return (of_question and len(question) >= _LONG) or (of_sentence and min(len(sentence), len(question)) >= _LONG)
