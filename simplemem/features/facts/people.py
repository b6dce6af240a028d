"""Know who is meant: "my sister Ruth" and "Ruth" are one person, and so are "I" and "Ana".

The names come from the current facts of a scope. A person with two names, or a name of two
persons, is not resolved. "My sister" may be another sister, but "my mother" has one name. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from simplemem.features.fact import Slot
from simplemem.features.facts.language import LANGUAGES, MAX_READ, language_of, plain_text
from simplemem.features.facts.reading import Reading

_USER = ""  # the subject of slots about the user


class _Naming(NamedTuple):
    """A name, and whom a statement says it is of: a relation such as "sister", or the user."""

    name: str
    person: str


@dataclass(frozen=True)
class People:
    """Names and relations of persons in small letters, as far as they are certain."""

    relation_of_name: Mapping[str, str] = field(default_factory=dict)  # "" for the user
    name_of_relation: Mapping[str, str] = field(default_factory=dict)  # only of one person each

    def resolve(self, reading: Reading) -> Reading:
        """Return a reading whose slot is about the person that its subject means.

        A subject that names nobody known stays. A person whose name is known is not one of several:
        "my sister Ruth" is no other sister.
        """
        if reading.slot is None:
            return reading
        subject = reading.slot.subject.casefold()
        resolved = self._resolve_subject(subject)
        if resolved == subject:
            return reading
        slot = Slot(resolved, reading.slot.relation, reading.slot.object)
        return reading._replace(slot=slot, is_one_of_several=False)

    def _resolve_subject(self, subject: str) -> str:
        """Return the name of the person that a subject means, "" for the user."""
        if self.relation_of_name.get(subject) == _USER:
            return _USER
        relation, _, name = subject.rpartition(" ")
        if relation and self.relation_of_name.get(name) == relation:
            return name
        return self.name_of_relation.get(subject, subject)


def _is_unique(relation: str) -> bool:
    """Return whether people have one person of a relation: a mother, but not a sister."""
    return not any(language.has("several", [relation]) for language in LANGUAGES)


def people_in(statements: Iterable[str]) -> People:
    """Return the people whom some statements name, without those who are not certain."""
    relations_by_name: dict[str, set[str]] = defaultdict(set)
    names_by_relation: dict[str, set[str]] = defaultdict(set)
    for statement in statements:
        for naming in _namings_in(statement):
            relations_by_name[naming.name].add(naming.person)
            names_by_relation[naming.person].add(naming.name)

    relation_of_name = _certain(relations_by_name)
    name_of_relation = {
        relation: name
        for relation, name in _certain(names_by_relation).items()
        if relation != _USER and _is_unique(relation)
    }
    return People(relation_of_name, name_of_relation)


def _certain(values_by_key: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the value of each key that has only one."""
    certain: dict[str, str] = {}
    for key, values in values_by_key.items():
        if len(values) == 1:
            certain[key] = next(iter(values))
    return certain


@lru_cache(maxsize=20_000)
def _namings_in(statement: str) -> tuple[_Naming, ...]:
    """Return the names in a statement of the form "my sister Ruth", "my sister is called Ruth".

    The name of the user is also read: "I'm Ana".
    """
    text = statement[:MAX_READ]
    patterns = language_of(plain_text(statement)).patterns
    namings = [
        _Naming(match["name"].casefold(), match["kin"].casefold())
        for match in patterns["kin_name"].finditer(text)
    ]
    own_name = patterns["own_name"].search(text)
    if own_name is not None:
        namings.append(_Naming(own_name["name"].casefold(), _USER))
    return tuple(namings)
