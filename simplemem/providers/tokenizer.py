"""Split a text into the tokens of WordLlama's vocabulary, by byte pair encoding."""

from __future__ import annotations

import heapq
import json
import re
from array import array
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

_SPACE = "\u2581"  # stands for a space in the vocabulary
# A line break, a word with the spaces before it, or spaces at the end of a line.
_SPACED_WORDS = re.compile(f"\n|{_SPACE}*[^{_SPACE}\n]+|{_SPACE}+")
# Each of these texts is one token, with this number, even inside a word.
_SPECIAL_TOKENS = {"<unk>": 0, "<s>": 1, "</s>": 2}
_SPECIAL_TEXT = re.compile("(<unk>|<s>|</s>)")
# The runs of a text, each of which is joined alone. This changes no token: no learned pair joins a
# letter or digit to another character, except spaces before a word, and "²" before a mark.
_RUNS = re.compile(rf"{_SPACE}*[^\W_²]+|[\W_²]+")
_FIRST_BYTE = 3  # the token of the byte 0
_MAX_CACHED_RUNS = 20_000
_MAX_CACHED_COUNTS = 20_000


class Tokenizer:
    """Joins the characters of a text to tokens; the pair that was learned first is joined first.

    A token is a number from 0 to 31,999. No token contains a line break, or a space after another
    character, so each word is tokenized alone. Remembers the tokens of the last runs of letters, or
    of other characters. Any thread may call it.
    """

    def __init__(self, path: Path) -> None:
        """Read the vocabulary from a file of Hugging Face's format. Raises OSError."""
        model = json.loads(path.read_bytes())["model"]
        self._ids: dict[str, int] = model["vocab"]
        self._merges: list[str] = model["merges"]
        # The caches belong to the instance. If they decorated methods, they would belong to the
        # class, and keep every instance in memory.
        cached_counts = lru_cache(maxsize=_MAX_CACHED_COUNTS)
        cached_tokens = lru_cache(maxsize=_MAX_CACHED_RUNS)
        self._count_of_word = cached_counts(lambda word: len(self._encode(word)))
        # An array takes a twentieth of the memory of a list.
        self._tokens_of_run = cached_tokens(lambda run: array("H", self._tokenize_run(run)))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The rank of each pair of parts, such as "th e"; the pair that was learned first has 0.

        Built at the first use: a word that is one token needs no ranks.
        """
        return {pair: rank for rank, pair in enumerate(self._merges)}

    def tokens(self, word: str) -> list[int]:
        """Return the tokens of a word, as if a space were before it.

        The word must contain no white space. An empty word has no tokens.
        """
        if word.isalnum() and "²" not in word:
            # One run, as most words are.
            return list(self._tokens_of_run(_SPACE + word))

        tokens: list[int] = []
        for part in _SPECIAL_TEXT.split(word):
            if not part:
                continue
            token = _SPECIAL_TOKENS.get(part)
            if token is None:
                tokens += self._encode(_SPACE + part)
            else:
                tokens.append(token)
        return tokens

    def count(self, text: str) -> int:
        """Return the number of tokens in a text, which may have spaces and line breaks."""
        total = 0
        for part in _SPECIAL_TEXT.split(text):
            if part in _SPECIAL_TOKENS:
                total += 1
            elif part:
                spaced = _SPACE + part.replace(" ", _SPACE)
                spaced_words = _SPACED_WORDS.findall(spaced)
                total += sum(map(self._count_of_word, spaced_words))
        return total

    def _encode(self, text: str) -> list[int]:
        """Return the tokens of a text without special tokens.

        Spaces must have been replaced by `_SPACE`, and one must be before the text.
        """
        tokens: list[int] = []
        for run in _RUNS.findall(text):
            tokens += self._tokens_of_run(run)
        return tokens

    def _tokenize_run(self, run: str) -> list[int]:
        """Return the tokens of a run of letters, or of other characters, by joining its characters.

        A character that no token has becomes a token per byte.
        """
        whole = self._ids.get(run)
        if whole is not None:
            return [whole]  # joining its characters would give this token too

        tokens: list[int] = []
        for part in self._join_pairs(run):
            token = self._ids.get(part)
            if token is not None:
                tokens.append(token)
            else:
                tokens += [_FIRST_BYTE + byte for byte in part.encode()]
        return tokens

    def _join_pairs(self, text: str) -> list[str]:
        """Return the parts of a text after all known pairs are joined, the lowest rank first."""
        ranks = self._ranks
        parts = list(text)  # a part that was joined to the one before it becomes ""
        end = len(parts)
        # The parts form a linked list, so that joining two takes constant time.
        previous = list(range(-1, end - 1))
        following = list(range(1, end + 1))

        # Pairs that may be joined, as (rank, index of the left part, left, right).
        candidates: list[tuple[int, int, str, str]] = []
        for index, (left, right) in enumerate(pairwise(parts)):
            rank = ranks.get(f"{left} {right}")
            if rank is not None:
                candidates.append((rank, index, left, right))
        heapq.heapify(candidates)

        while candidates:
            _, index, left, right = heapq.heappop(candidates)
            right_index = following[index]
            if parts[index] != left or right_index == end or parts[right_index] != right:
                continue  # one of the two was joined to another part before

            parts[index] = left + right
            parts[right_index] = ""
            next_index = following[right_index]
            following[index] = next_index
            if next_index < end:
                previous[next_index] = index

            # The joined part forms new pairs with the part before it and the part after it.
            for start in (previous[index], index):
                if start < 0 or following[start] >= end:
                    continue
                left = parts[start]
                right = parts[following[start]]
                rank = ranks.get(f"{left} {right}")
                if rank is not None:
                    heapq.heappush(candidates, (rank, start, left, right))
        return [part for part in parts if part]
