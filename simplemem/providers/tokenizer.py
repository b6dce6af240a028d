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
_PIECES = re.compile(f"\n|{_SPACE}*[^{_SPACE}\n]+|{_SPACE}+")
# Each of these texts is one token, even inside a word.
_SPECIAL = {"<unk>": 0, "<s>": 1, "</s>": 2}
_SPECIALS = re.compile("(<unk>|<s>|</s>)")
_FIRST_BYTE = 3  # the token of the byte 0
_MAX_CACHED_WORDS = 10_000
_MAX_CACHED_SIZES = 20_000


class Tokenizer:
    """Joins the characters of a text to tokens; the pair that was learned first is joined first.

    No token contains a space within it or a line break, so each word is tokenized alone. The tokens
    of the last words are remembered. `tokens(word)` returns those of a word that follows a space.
    """

    def __init__(self, path: Path) -> None:
        """Read the vocabulary from a file of Hugging Face's format. Raises OSError."""
        model = json.loads(path.read_bytes())["model"]
        self._ids: dict[str, int] = model["vocab"]
        self._merges: list[str] = model["merges"]
        # The caches belong to the instance. If they decorated methods, they would belong to the
        # class, and keep every instance in memory.
        cached_size = lru_cache(maxsize=_MAX_CACHED_SIZES)
        cached_tokens = lru_cache(maxsize=_MAX_CACHED_WORDS)
        self._size = cached_size(lambda piece: len(self._encode(piece)))
        # An array takes a twentieth of the memory of a list.
        self.tokens = cached_tokens(lambda word: array("H", self._tokenize(word)))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The rank of each pair of parts, "left right"; the pair that was learned first has 0.

        Built at the first use: a word that is one token needs no ranks.
        """
        return {pair: rank for rank, pair in enumerate(self._merges)}

    def _tokenize(self, word: str) -> list[int]:
        """Return the tokens of a word, as if a space were before it. It contains no space."""
        tokens: list[int] = []
        for part in _SPECIALS.split(word):
            if not part:
                continue
            spaced = _SPACE + part
            token = _SPECIAL.get(part)
            if token is None:
                # If a part is in the vocabulary, joining its characters would end in its token.
                token = self._ids.get(spaced)
            if token is None:
                tokens += self._encode(spaced)
            else:
                tokens.append(token)
        return tokens

    def count(self, text: str) -> int:
        """Return the number of tokens in a text, which may have spaces and line breaks."""
        total = 0
        for part in _SPECIALS.split(text):
            if part in _SPECIAL:
                total += 1
            elif part:
                spaced = _SPACE + part.replace(" ", _SPACE)
                pieces = _PIECES.findall(spaced)
                total += sum(map(self._size, pieces))
        return total

    def _encode(self, text: str) -> list[int]:
        """Return the tokens of a piece of text, by joining its characters.

        A character that no token has becomes a token per byte. Spaces must have been replaced by
        `_SPACE`.
        """
        tokens: list[int] = []
        for part in self._join_pairs(text):
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
