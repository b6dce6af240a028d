from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from simplemem.kinds.talk.block import Block
from simplemem.kinds.talk.cues import content_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
Vectors = Callable[[Sequence[str]], "NDArray[np.float32] | None"]
SHIFT = re.compile(r"(?i)^(anyway|by the way|different topic|on another note|something else)\b")
BACK = re.compile(r"(?i)(?:back to|about) (?:the |my )?(.+?)(?: again)?[:,]")


class Decision(NamedTuple):
    block: str
    reason: str
    cue: bool
    close: float | None
    ranked: tuple[str, ...]


class Governor:
    def __init__(self, vectors: Vectors) -> None:
        self.v = vectors

    def forget(self, block: str) -> None: ...
    def decide(self, message: str, at: datetime, blocks: Sequence[Block], current: Block | None) -> Decision:
        ids = tuple(b.id for b in blocks if b.status != "closed")[:12]
        if not blocks or current is None:
            return Decision("", "the first topic", False, None, ids)
        if m := BACK.search(message[:90]):
            words = set(content_words(m[1]))
            best = max(
                blocks,
                key=lambda b: len(words & set(content_words(b.label + " " + " ".join(t.message for t in b.turns)))),
            )
            if words:
                return Decision(best.id, "the message goes back to it", True, None, ids)
        if SHIFT.search(message):
            return Decision("", "the message says that the subject changes", True, None, ids)
        return Decision(current.id, "nothing speaks against going on", False, None, ids)
