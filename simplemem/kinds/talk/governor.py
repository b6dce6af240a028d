"""Which block a message belongs to, by rules that say why: the one it goes back to by name, the current one while it is
vague, else the nearest by what was said last and what it is about, or a new one. In doubt the conversation goes on. Pure
but for the vectors it is given; never asks a model, never writes."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.kinds.talk import cues
from simplemem.kinds.talk.block import Block

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = Callable[[Sequence[str]], "NDArray[np.float32] | None"]  # unit rows; None: words alone decide

_EXCHANGES: Final = 4  # of a block, the latest, that stand for it
_NEAREST: Final = 12
_FEW_WORDS: Final = 4  # content words; a message with fewer says nothing of what about
_SAME_DAY: Final = 8 * 3600.0  # seconds of silence in which a vague message goes on
_NAMED: Final = 0.3  # share of the weight of what is gone back to, that a block must hold
_MOST_TEXT: Final = 2000  # characters of a message or reply that are read

# The numbers of rule 5, in units of a cosine. `python bench/talk.py --tune` makes them, on LoCoMo c00 to c02 and the chats
# of the acceptance script.
# Of every block: how the message follows what was said last (raw texts), what it is about (content words, the nearest of
# the last exchanges), a word that both hold, by its rareness, a last reply that asked, a name that only others know.
NEAR = {"share": 0.0, "follows": 1.0, "about": 1.156, "shared": 0.121, "asked": 0.226, "stranger": -0.195}
STAY = {
    "": 0.812,
    "day": -0.787,
    "few": 0.051,
    "opening": -0.144,
    "shift": -1.07,
    "greeting": -0.217,
    "pronoun": 0.055,
    "follow": 0.05,
    "silence": 0.0,
    "begun": 0.0,
}
BACK = {"opening": -0.182, "shift": -0.231}
NEW = {"": 0.482, "greeting": 0.9, "news": 1.371, "opening": 0.5, "shift": 0.331, "follow": -0.7, "pronoun": -0.142}


class Decision(NamedTuple):
    """The block, "" for a new one; the reason; whether a cue decided; how far apart the two best numbers were, where
    numbers did; the live blocks, nearest first."""

    block: str
    reason: str
    cue: bool = False
    close: float | None = None
    ranked: tuple[str, ...] = ()


class Governor:
    """Remembers what stands for each block, until its note changes."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._hashes: dict[str, str] = {}  # of the blocks' notes, as they were read
        self._holders: dict[str, set[str]] = {}  # the blocks of a word, and of a name, which has a capital
        self._asked: set[str] = set()
        self._rows: dict[str, NDArray[np.float32]] = {}  # how the last was said, then what each is about
        self._matrix: tuple[list[str], NDArray[np.float32]] | None = None

    def decide(self, message: str, at: datetime, blocks: Sequence[Block], current: Block | None) -> Decision:
        """Rules 2 to 6: where a message belongs that no agent placed. `blocks` are all that can be read."""
        if not blocks:
            return Decision("", "the first message of all")
        words = cues.content_words(message[:_MOST_TEXT])
        if (object_ := cues.back_to(message)) and (block := self._named(object_, blocks)):
            return Decision(block.id, f'goes back to "{" ".join(object_)}"', cue=True)
        is_cue = cues.SHIFT.match(message) is not None
        is_vague = object_ == [] or (len(words) < _FEW_WORDS and not is_cue)
        if current and is_vague and (at - current.last).total_seconds() < _SAME_DAY:
            return Decision(current.id, "says too little to be about something else")
        live = [block for block in blocks if block.status != "closed" or block is current]
        scores = self._scores(message, words, at, live, current)
        numbers = sorted(scores.values(), reverse=True)
        close = numbers[0] - numbers[1]
        best = max(scores, key=lambda id_: (scores[id_], id_ == (current.id if current else "")))
        ranked = tuple(heapq.nlargest(_NEAREST, filter(None, scores), key=lambda id_: scores[id_]))
        reason = "begins something new" if not best else "nearest to what was said there last"
        if current and best == current.id:
            reason = "goes on with what was said last"
        return Decision(best, reason, is_cue and best != (current.id if current else ""), close, ranked)

    def _scores(
        self, message: str, words: list[str], at: datetime, live: Sequence[Block], current: Block | None
    ) -> dict[str, float]:
        """A number for each live block, and for a new one under ""."""
        head, manner = message[:_MOST_TEXT], _manner(message[:_MOST_TEXT], words)
        if current is not None:
            silence = (at - current.last).total_seconds()
            before = current.turns[-2].at if len(current.turns) > 1 else current.created
            others = (b.last for b in live if b.id != current.id and b.session == current.session)
            manner["day"] = silence >= _SAME_DAY
            manner["silence"] = math.log2(1 + min(max(silence, 0), 3600) / 300)
            manner["begun"] = len(current.turns) < 2 or any(last > before for last in others)
        self._catch_up(live)
        near = self._nearness(live, head, words)
        names = [self._holders[name] for name in cues.names_in(head) if name in self._holders]
        known = set[str]().union(*names)
        shared = Counter[str]()
        weights = {
            w: math.log(1 + (len(live) + 1) / len(self._holders[w]))
            for w in {_stem(w) for w in words} & self._holders.keys()
        }
        for word, weight in weights.items():
            for id_ in self._holders[word]:
                shared[id_] += weight
        total = sum(weights.values())
        for id_, weight in shared.items():
            near[id_] += NEAR["shared"] * weight + NEAR["share"] * weight / total
        for id_ in near:
            near[id_] += NEAR["asked"] * (id_ in self._asked) + NEAR["stranger"] * (bool(names) and id_ not in known)
            kinds = STAY if current is not None and id_ == current.id else BACK
            near[id_] += sum(value * manner.get(kind, 0) for kind, value in kinds.items())
        return near | {"": sum(value * manner[kind] for kind, value in NEW.items())}

    def _nearness(self, live: Sequence[Block], head: str, words: Sequence[str]) -> dict[str, float]:
        """How near each block is by vectors, where there are any."""
        ids = [block.id for block in live]
        said = self._vectors([head, " ".join(words)])
        if said is None or len(self._rows) < len(live):
            return dict.fromkeys(ids, 0.0)
        if self._matrix is None or self._matrix[0] != ids:
            import numpy as np

            self._matrix = ids, np.stack([self._rows[id_] for id_ in ids])
        rows = self._matrix[1]
        near = NEAR["follows"] * (rows[:, 0] @ said[0]) + NEAR["about"] * (rows[:, 1:] @ said[1]).max(axis=1)
        return dict(zip(ids, near.tolist(), strict=True))

    def _catch_up(self, live: Sequence[Block]) -> None:
        """Forget what changed or went, and read it anew."""
        stale = [block for block in live if self._hashes.get(block.id) != block.sha256]
        old = (self._hashes.keys() - {block.id for block in live}) | (self._hashes.keys() & {b.id for b in stale})
        for id_ in old:
            del self._hashes[id_]
            self._rows.pop(id_, None)
        for word in [word for word, ids in self._holders.items() if ids & old] if old else ():
            self._holders[word] -= old
            if not self._holders[word]:
                del self._holders[word]
        self._asked -= old
        texts = list[str]()
        for block in stale:
            self._hashes[block.id] = block.sha256
            said = [f"{turn.message[:_MOST_TEXT]} {turn.answer[:_MOST_TEXT]}" for turn in block.turns[-_EXCHANGES:]]
            about = [cues.content_words(text) for text in said]
            for word in {_stem(word) for each in about for word in each}.union(*map(cues.names_in, said)):
                self._holders.setdefault(word, set()).add(block.id)
            if said and "?" in block.turns[-1].answer[-60:]:
                self._asked.add(block.id)
            texts += [*said[-1:], *map(" ".join, about), *[""] * (_EXCHANGES + 1)][: _EXCHANGES + 1]
        if stale and (rows := self._vectors(texts)) is not None:
            for block, each in zip(stale, rows.reshape(len(stale), _EXCHANGES + 1, -1), strict=True):
                self._rows[block.id] = each
                if self._matrix and block.id in self._matrix[0]:
                    self._matrix[1][self._matrix[0].index(block.id)] = each

    def _named(self, object_: Sequence[str], blocks: Sequence[Block]) -> Block | None:
        """The block that holds most of the rare words of what is gone back to, in label and keywords before turns."""
        wanted, shares = set(map(_stem, object_)), dict[str, Counter[str]]()
        for block in blocks:
            told = [f"{block.label} {' '.join(block.keywords)}", *(f"{t.message} {t.answer}" for t in block.turns)]
            shares[block.id] = Counter()
            for number, text in enumerate(told):
                small = text.lower()
                if any(word in small for word in wanted):
                    for word in wanted.intersection(map(_stem, cues.content_words(text))):
                        shares[block.id][word] += 1 if number else len(told)
        held = Counter(word for counts in shares.values() for word in counts)
        weight = {word: math.log(1 + (len(blocks) + 1) / max(held[word], 0.5)) for word in wanted}

        def held_of(block: Block) -> float:
            return sum(weight[word] * (1 + n / (1 + len(block.turns))) for word, n in shares[block.id].items())

        best = max(blocks, key=lambda block: (held_of(block), block.last))
        return best if sum(weight[w] for w in shares[best.id]) >= _NAMED * sum(weight.values()) else None


def _manner(head: str, words: Sequence[str]) -> dict[str, float]:
    """How a message is said: the kinds of sentence that it is."""
    found: dict[str, float] = {"": 1, "few": len(words) < _FEW_WORDS, "news": cues.NEWS.search(head[:160]) is not None}
    starts = {"shift": cues.SHIFT, "greeting": cues.GREETING, "opening": cues.OPENING, "follow": cues.FOLLOW}
    found |= {kind: pattern.match(head) is not None for kind, pattern in starts.items()}
    return found | {"pronoun": cues.PRONOUN.search(head[:40]) is not None}


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
