"""Which block a message belongs to, by rules that say why: the one it goes back to by name, the current one while it is
vague, else the nearest by what was said last and what it is about, or a new one. In doubt the conversation goes on. Pure
but for the vectors it is given; never asks a model, never writes."""

from __future__ import annotations

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
NEAR = {"follows": 1.0, "about": 0.9, "shared": 0.05, "asked": 0.18, "stranger": -0.6}
STAY = {
    "": 0.85,
    "day": -0.8,
    "few": 0.1,
    "opening": -0.2,
    "shift": -1.1,
    "greeting": -0.4,
    "pronoun": 0.0,
    "follow": 0.05,
}
BACK = {"opening": -0.2, "shift": -0.2}
NEW = {"": 0.5, "greeting": 0.9, "news": 1.0, "opening": 0.5, "shift": 0.4, "follow": -0.7, "pronoun": 0.0}


class Decision(NamedTuple):
    """The block, "" for a new one; the reason; whether a cue decided; how far apart the two best numbers were, where
    numbers did; the live blocks, nearest first."""

    block: str
    reason: str
    cue: bool = False
    close: float | None = None
    ranked: tuple[str, ...] = ()


class _Recent(NamedTuple):
    """What stands for a block: of its last exchanges the words, the names and the vectors."""

    sha256: str
    words: frozenset[str]
    names: frozenset[str]
    is_asked: bool
    rows: NDArray[np.float32] | None  # how the last was said, then what each is about


class Governor:
    """Remembers what stands for each block, until its note changes."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._recent: dict[str, _Recent] = {}
        self._counts: Counter[str] = Counter()  # in how many blocks a word is

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
        ranked = tuple(sorted(filter(None, scores), key=lambda id_: -scores[id_])[:_NEAREST])
        reason = "begins something new" if not best else "nearest to what was said there last"
        if current and best == current.id:
            reason = "goes on with what was said last"
        return Decision(best, reason, is_cue and best != (current.id if current else ""), close, ranked)

    def _scores(
        self, message: str, words: list[str], at: datetime, live: Sequence[Block], current: Block | None
    ) -> dict[str, float]:
        """A number for each live block, and for a new one under ""."""
        head = message[:_MOST_TEXT]
        manner = {"": True, "few": len(words) < _FEW_WORDS, "news": cues.NEWS.search(head[:160]) is not None}
        manner |= {"pronoun": cues.PRONOUN.search(head[:40]) is not None, "shift": cues.SHIFT.match(head) is not None}
        manner |= {"greeting": cues.GREETING.match(head) is not None, "opening": cues.OPENING.match(head) is not None}
        manner |= {"follow": cues.FOLLOW.match(head) is not None}
        manner["day"] = current is not None and (at - current.last).total_seconds() >= _SAME_DAY
        said = self._vectors([head, " ".join(words)])
        names, total = cues.names_in(head), self._catch_up(live)
        names &= {name for block in live for name in self._recent[block.id].names}
        wanted = {w: math.log(1 + (total + 1) / self._counts[w]) for w in set(map(_stem, words)) if self._counts[w]}
        scores = {}
        for block in live:
            recent, is_current = self._recent[block.id], current is not None and block.id == current.id
            near = {"shared": sum(weight for word, weight in wanted.items() if word in recent.words)}
            near |= {"asked": recent.is_asked, "stranger": bool(names) and not names & recent.names}
            if said is not None and recent.rows is not None:
                near["follows"] = float(recent.rows[0] @ said[0])
                near["about"] = float((recent.rows[1:] @ said[1]).max())
            scores[block.id] = sum(NEAR[kind] * value for kind, value in near.items())
            scores[block.id] += sum(v for kind, v in (STAY if is_current else BACK).items() if manner[kind])
        scores[""] = sum(value for kind, value in NEW.items() if manner[kind])
        return scores

    def _catch_up(self, live: Sequence[Block]) -> int:
        """Read again what changed; how many blocks there are."""
        for id_ in self._recent.keys() - {block.id for block in live}:
            self._counts.subtract(self._recent.pop(id_).words)
        for block in live:
            known = self._recent.get(block.id)
            if known is None or known.sha256 != block.sha256:
                if known:
                    self._counts.subtract(known.words)
                self._recent[block.id] = self._read(block)
                self._counts.update(self._recent[block.id].words)
        return len(live)

    def _read(self, block: Block) -> _Recent:
        turns = block.turns[-_EXCHANGES:]
        texts = [f"{turn.message[:_MOST_TEXT]} {turn.answer[:_MOST_TEXT]}" for turn in turns]
        about = [cues.content_words(text) for text in texts]
        rows = self._vectors([texts[-1], *map(" ".join, about)]) if texts else None
        words = frozenset(_stem(word) for each in about for word in each)
        names = frozenset(name for text in texts for name in cues.names_in(text))
        return _Recent(block.sha256, words, names, bool(turns) and "?" in turns[-1].answer[-60:], rows)

    def _named(self, object_: Sequence[str], blocks: Sequence[Block]) -> Block | None:
        """The block that holds most of the rare words of what is gone back to."""
        wanted = set(map(_stem, object_))
        shares: dict[Block, Counter[str]] = {}
        for block in blocks:
            told = [f"{block.label} {' '.join(block.keywords)}", *(f"{t.message} {t.answer}" for t in block.turns)]
            found = [wanted & set(map(_stem, cues.content_words(text))) for text in told]
            shares[block] = Counter(word for each in found for word in each)
            for word in found[0]:
                shares[block][word] += len(told)  # a label counts as every turn
        held = Counter(word for counts in shares.values() for word in counts)
        weight = {word: math.log(1 + (len(blocks) + 1) / max(held[word], 0.5)) for word in wanted}
        best = max(
            blocks, key=lambda b: (sum(weight[w] * (1 + n / (1 + len(b.turns))) for w, n in shares[b].items()), b.last)
        )
        return best if sum(weight[word] for word in shares[best]) >= _NAMED * sum(weight.values()) else None


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
