"""Words of a text, as the index and a question both see them. Pure; the same on both sides or nothing is found.

SQLite's `unicode61` tokenizer separates words at spaces and punctuation, which leaves whole sentences of Chinese,
Japanese, Thai and Korean as one word. `segment` writes such runs out as overlapping pairs and single characters, so that
a two-character word inside a sentence is a word of its own. Everything else is left to the tokenizer.
"""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces (Thai, Lao, Khmer, Myanmar, kana, Han) and Hangul, whose particles hang on the noun.
_UNSPACED = re.compile(
    "[\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)

STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be because been before being both but by can could did do
    does doing down during each few for from further had has have having he her here hers him his how i if in into is it
    its itself just me more most my myself no nor not now of off on once only or other our out over own same she should
    so some such than that the their them then there these they this those through to too under until up very was we
    were what when where which while who whom why will with would you your yours""".split()
)


def segment(text: str) -> str:
    """`text` with every run of an unspaced script written as pairs and single characters; other text untouched."""
    if text.isascii():
        return text
    return _UNSPACED.sub(lambda run: " " + " ".join(_pieces(run.group())) + " ", text)


def _pieces(run: str) -> list[str]:
    pieces = [run[k : k + 2] for k in range(len(run) - 1)]
    return pieces + list(run)


def words_of(text: str) -> list[str]:
    """The words of a question, in order and once each. A run of an unspaced script gives its pairs (or one character)."""
    found: dict[str, None] = {}
    for word in _split(unicodedata.normalize("NFC", text)):
        for piece in _words_in(word):
            found.setdefault(piece.casefold(), None)
    return list(found)


def _words_in(word: str) -> list[str]:
    if word.isascii():
        return [word]
    pieces: list[str] = []
    last = 0
    for run in _UNSPACED.finditer(word):
        pieces.append(word[last : run.start()])
        chars = run.group()
        pieces += [chars] if len(chars) == 1 else [chars[k : k + 2] for k in range(len(chars) - 1)]
        last = run.end()
    pieces.append(word[last:])
    return [piece for piece in pieces if piece]


def _split(text: str) -> list[str]:
    """Split where unicode61 does: letters, numbers, marks and private-use characters are words, the rest is between."""
    if text.isascii():
        return re.findall(r"[A-Za-z0-9]+", text)
    kept = (c if unicodedata.category(c)[0] in "LNM" or unicodedata.category(c) == "Co" else " " for c in text)
    return "".join(kept).split()


def content_words(words: list[str]) -> list[str]:
    """Without the words that only hold a sentence together; all of them when nothing else is there."""
    return [word for word in words if word not in STOP_WORDS] or words


def without_stop_words(text: str) -> str:
    """A text for the embedder: stop words carry no meaning in a mean of word vectors (retrieval.md §2)."""
    return " ".join([word for word in text.split() if word.lower() not in STOP_WORDS])


def count_tokens(text: str) -> int:
    """About how many tokens a model reads: four for three words, one for each unspaced character (an estimate)."""
    unspaced = 0 if text.isascii() else sum(len(run) for run in _UNSPACED.findall(text))
    words = len(text.split())
    return max((words * 4 + 2) // 3 + unspaced, (len(text) - unspaced) // 4 + unspaced)
