"""A fact as a sentence states it, with a key by which it is found again. Pure."""

from __future__ import annotations

import re
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from simplemem.features.fact import Slot
from simplemem.features.facts.new_fact import NewFact

_MAX_KEY: Final = 80  # characters
_FILE: Final = Path(__file__).with_name("words") / "keys.toml"
IN_EVERY_KEY: Final = frozenset(tomllib.loads(_FILE.read_text(encoding="utf-8"))["ignored"].split())
"""Words that every key could have."""


class StatedFact(NamedTuple):
    """What a sentence states. `decided_by` names the rule, the agent or the model that read it."""

    key: str
    value: str
    category: str
    sentence: str
    decided_by: str
    confidence: float
    subject: str = ""  # whom it is about, if the agent says so; the key contains it
    since: datetime | None = None
    until: datetime | None = None
    replaces: tuple[str, ...] = ()  # ids or keys of the earlier facts that it makes outdated

    def as_new_fact(self) -> NewFact:
        """Return the fact as the reconciler takes it. `replaces` must have ids, and no keys."""
        return NewFact(
            self.sentence,
            slot=Slot(self.subject, self.key.replace("_", " "), self.value),
            valid_from=self.since,
            valid_to=self.until,
            confidence=self.confidence,
            decided_by=self.decided_by,
            replaces=self.replaces,
            key=self.key,
            is_secret=self.category == "secret",
        )


def name_of_fact(subject: str, relation: str) -> str:
    """Return the name of a fact, of which its key is made: the subject, then the relation.

    The subject is left out if the relation has it.
    """
    if subject and key_of(subject) not in key_of(relation):
        return f"{subject} {relation}"
    return relation


def key_of(text: str) -> str:
    """Return a key in snake case, of at most 80 characters, for the name of a fact.

    Words that every key could have are left out. Returns "" if no other word is left.
    """
    without_genitive = re.sub(r"['’]s\b", "", text.lower())
    plain = without_genitive.replace("_", " ")
    words = [word for word in re.findall(r"\w+", plain) if word not in IN_EVERY_KEY]
    key = "_".join(words)
    return key[:_MAX_KEY].strip("_")
