"""Which block a message belongs to, by rules that say why: the one it goes back to by name, the current one while it is
vague, else the nearest by what was said last and what it is about, or a new one. In doubt the conversation goes on. Pure
but for the vectors it is given; never asks a model, never writes."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock
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

# The numbers of rule 5, in units of a cosine. Found on LoCoMo c00 to c02 and the chats of the acceptance script by
# `python bench/talk.py --tune`. Of every block: how the message follows what was said last there (whole texts), how near it
# is to one of its exchanges (content words), its share of the words that any block knows, rare ones first, a last reply that
# asked, a name that only others know. "begun": the subject was taken up with the message before, on the same day.
NEAR = {"follows": 1.0, "about": 1.4, "shared": 0.3, "asked": 0.25, "stranger": -0.3}
STAY = {"": 0.36, "begun": 0.5, "follow": 0.24, "day": -0.55, "opening": -0.43, "greeting": -0.2, "shift": -1.0}
BACK = {"opening": -0.2, "shift": -0.45}
NEW = {"": 0.1, "greeting": 1.05, "news": 1.05, "opening": 0.64, "shift": 0.35, "follow": -0.2}
_UNKNOWN: Final = 0.5  # stands for what vectors say of the nearest blocks, where there are none


class Decision(NamedTuple):
    """The block, "" for a new one; the reason; whether a cue decided; how far apart the two best numbers were, where
    numbers did; the live blocks, nearest first."""

    block: str
    reason: str
    cue: bool = False
    close: float | None = None
    ranked: tuple[str, ...] = ()


class Governor:
    """Remembers what stands for each block, until its note changes: the words, names and vectors of its last exchanges,
    and of the first, which says what it is about. May be used from several threads."""

    def __init__(self, vectors: Vectors) -> None:
        self._lock = Lock()
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
        is_hello = cues.GREETING.match(message) is not None and cues.NEWS.search(message[:_MOST_TEXT]) is not None
        is_vague = object_ == [] or (len(words) < _FEW_WORDS and not is_cue and not is_hello)
        if current and is_vague and (at - current.last).total_seconds() < _SAME_DAY:
            return Decision(current.id, "says too little to be about something else")
        live = [block for block in blocks if block.status != "closed" or block is current]
        with self._lock:
            scores = self._scores(message[:_MOST_TEXT], words, at, live, current)
        numbers = sorted(scores.values(), reverse=True)
        close = numbers[0] - numbers[1]
        best = max(scores, key=lambda id_: (scores[id_], id_ == (current.id if current else "")))
        ranked = tuple(heapq.nlargest(_NEAREST, filter(None, scores), key=lambda id_: scores[id_]))
        reason = "begins something new" if not best else "nearest to what was said there last"
        if current and best == current.id:
            reason = "goes on with what was said last"
        return Decision(best, reason, is_cue and best != (current.id if current else ""), close, ranked)

    def _scores(
        self, head: str, words: Sequence[str], at: datetime, live: Sequence[Block], current: Block | None
    ) -> dict[str, float]:
        """A number for each live block, and for a new one under ""."""
        manner = _manner(head)
        if current is not None:
            before = current.turns[-2].at if len(current.turns) > 1 else current.created
            others = (block.last for block in live if block.id != current.id and block.session == current.session)
            manner["day"] = (at - current.last).total_seconds() >= _SAME_DAY
            manner["begun"] = not manner["day"] and (len(current.turns) < 2 or any(last > before for last in others))
        self._catch_up(live)
        near = self._nearness(live, head, words)
        names = [self._holders[name] for name in cues.names_in(head) if name in self._holders]
        known, held = set[str]().union(*names), {_stem(word) for word in words} & self._holders.keys()
        weights = {word: _rareness(len(self._holders[word]), len(live)) for word in held}
        for word, weight in weights.items():
            for id_ in self._holders[word]:
                near[id_] += NEAR["shared"] * weight / sum(weights.values())
        for id_ in near:
            near[id_] += NEAR["asked"] * (id_ in self._asked) + NEAR["stranger"] * (bool(names) and id_ not in known)
            kinds = STAY if current is not None and id_ == current.id else BACK
            near[id_] += sum(value for kind, value in kinds.items() if manner[kind])
        return near | {"": sum(value for kind, value in NEW.items() if manner[kind])}

    def _nearness(self, live: Sequence[Block], head: str, words: Sequence[str]) -> dict[str, float]:
        """How near each block is by vectors, where there are any."""
        ids = [block.id for block in live]
        said = self._vectors([head, " ".join(words)])
        if said is None or len(self._rows) < len(live):
            return dict.fromkeys(ids, _UNKNOWN)
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
            turns = (*block.turns[: max(0, min(1, len(block.turns) - _EXCHANGES))], *block.turns[-_EXCHANGES:])
            said = [f"{turn.message[:_MOST_TEXT]} {turn.answer[:_MOST_TEXT]}" for turn in turns]
            about = [cues.content_words(text) for text in said]
            for word in {_stem(word) for each in about for word in each}.union(*map(cues.names_in, said)):
                self._holders.setdefault(word, set()).add(block.id)
            if said and "?" in block.turns[-1].answer[-60:]:
                self._asked.add(block.id)
            texts += [*said[-1:], *map(" ".join, about), *[""] * (_EXCHANGES + 2)][: _EXCHANGES + 2]
        if stale and (rows := self._vectors(texts)) is not None:
            for block, each in zip(stale, rows.reshape(len(stale), _EXCHANGES + 2, -1), strict=True):
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
        weight = {word: _rareness(max(held[word], 0.5), len(blocks)) for word in wanted}

        def held_of(block: Block) -> float:
            return sum(weight[word] * (1 + n / (1 + len(block.turns))) for word, n in shares[block.id].items())

        best = max(blocks, key=lambda block: (held_of(block), block.last))
        return best if sum(weight[w] for w in shares[best.id]) >= _NAMED * sum(weight.values()) else None


def _manner(head: str) -> dict[str, bool]:
    """How a message is said: the kinds of sentence that it is."""
    starts = {"shift": cues.SHIFT, "greeting": cues.GREETING, "opening": cues.OPENING, "follow": cues.FOLLOW}
    found = {kind: pattern.match(head) is not None for kind, pattern in starts.items()}
    return found | {"": True, "begun": False, "day": False, "news": cues.NEWS.search(head[:160]) is not None}


def _rareness(holders: float, total: int) -> float:
    return math.log(1 + (total + 1) / holders)


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
