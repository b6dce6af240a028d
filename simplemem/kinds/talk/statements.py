"""What a person states, by rules: a credential, a number, a name, an acronym, a decision, a task. Only what somebody says
of their own counts: no question, condition, quotation or word of others. A rule that is in doubt says nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from simplemem.note.passages import sentence_spans

_QUOTED: Final = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>.*?$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»", re.MULTILINE | re.DOTALL)
# Nobody states anything of their own in these: a question, a condition, a wish, what others say.
_ASKS: Final = (
    "what who whose where when which why how do does did is are am was were can could shall should would will may might "
    "have has had isn't aren't don't imagine suppose assume say pretend assuming supposing perhaps maybe provided once"
)
_SAYS: Final = "said says told tells wrote writes claims claimed asked asks thinks thought quoted"
_NOT_STATED: Final = re.compile(
    rf"\?\s*$|\A\W*(?:{'|'.join(_ASKS.split())})\b"
    r"|\b(?:if|unless|whether|suppose|assume|imagine|pretend|wish|hypothetically|for (?:example|instance)|e\.g\.|such as"
    r"|let's say|according to|i (?:read|heard) that)\b"
    rf"|(?<![\w-])(?!I\b|we\b)[\w-]{{1,40}} (?:{'|'.join(_SAYS.split())})\b",
    re.IGNORECASE,
)
_MOST_SENTENCE: Final = 500
_NOUN: Final = (
    r"(?:(?:api|access|secret|licen[cs]e|private|master|encryption|recovery) )?(?:key|token|code)"
    r"|pass(?:word|phrase|code)|pin(?: code)?|credential"
)
_CLAUSE: Final = r"(?:\A|[,;:–(] ?|\band |\bbut |\bso )"
_OWN: Final = r"(?P<whose>(?i:my|our|the|her|his|its|their)) (?:new |current )?"
_NUMBERS: Final = "number|extension|postcode|zip code|IBAN|combination|(?:tele)?phone|mobile|cell(?:phone)?"
_BEFORE: Final = r"(?:(?P<before>[\w'’-]+(?: [\w'’-]+){0,2}) )?"
_OF: Final = r"(?: (?:for|of|at|with) (?:the |my |our )?(?P<of>[\w'-]+(?: [\w'-]+){0,4}?))?"
_IS: Final = r"(?: is now| is| are now|'s|:| =) "
_END: Final = (
    r"(?=[.,;:!)]*(?:\Z|\s(?:and|but|so|since|because|now|until|from)\b)|[,;])"  # "4000 lines long" is no code
)
_THING: Final = r"(?P<of>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?)"
_NAME: Final = r"(?P<value>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.? )?[A-Z][\w'’-]*(?: (?:[A-Z][\w'’-]*|de|van|von|der|la)){0,3})"
_NUMBER: Final = r"(?P<value>[+(]?[A-Z0-9][\w()/.-]*(?: [\d()/.-]+)*)"
_ADDRESS: Final = r"(?P<value>\S+@\S+\.\w+|\d[^.!?\n]{5,120}|[A-Z][^.!?\n\d]{3,100}\d[^.!?\n]{0,40})"
_LEFT: Final = rf"{_CLAUSE}{_OWN}{_BEFORE}"
_HAVE: Final = rf"(?i:I|we)(?:'ve| have)(?: got)? an? {_THING}(?:,| and)* (?:her|his|its)"
_CHOSE: Final = r"(?i:let's|let us|we'll|we will|we decided to) (?:go with|use)"
_RULES: Final = tuple(
    (category, confidence, re.compile(pattern))
    for category, confidence, pattern in (
        ("name", 0.9, rf"{_CLAUSE}(?i:my|our) {_THING}(?: is (?:called|named)|(?:'s|’s) name is) {_NAME}"),
        ("name", 0.9, rf"{_CLAUSE}{_HAVE} name is {_NAME}"),
        ("secret", 0.95, rf"{_LEFT}(?P<noun>(?i:{_NOUN})){_OF}{_IS}(?P<value>\S{{4,200}}){_END}"),
        ("secret", 0.9, rf"{_CLAUSE}(?i:the new one) is (?P<value>\S{{4,200}}){_END}"),
        ("number", 0.9, rf"{_LEFT}(?P<noun>{_NUMBERS}){_OF}{_IS}{_NUMBER}{_END}"),
        ("address", 0.85, rf"{_LEFT}(?P<noun>address|e-?mail){_OF}{_IS}{_ADDRESS}"),
        (
            "definition",
            0.85,
            r"(?:\A|[ (])(?P<of>[A-Z][A-Z0-9]{1,7}) (?:stands|is short) for (?P<value>[^.!?\n,;]{3,120})",
        ),
        (
            "decision",
            0.8,
            rf"\b{_CHOSE} (?P<value>[^.!?\n,;]{{2,60}}?) for (?:the |my |our )?(?P<of>[^.!?\n,;]{{3,40}})",
        ),
        ("task", 0.8, r"\A(?i:please )?(?i:remind) me to (?P<value>[^.!?\n]{3,200})"),
    )
)
_DROPPED: Final = frozenset("the my our a an new current service account of for to your his her its their".split())
_MOST_KEY: Final = 80


class Statement(NamedTuple):
    """What a sentence states. `decided_by` names the rule, the agent or the model that read it."""

    key: str
    value: str
    category: str
    sentence: str
    decided_by: str
    confidence: float
    secret: bool


def stated(message: str) -> Iterator[str]:
    """The sentences in which a person states something of their own."""
    text = _QUOTED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), message)
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if len(sentence) <= 500 and not _NOT_STATED.search(sentence):
            yield sentence


def statements(message: str) -> list[Statement]:
    """The facts in a user's message."""
    found: dict[str, Statement] = {}
    subject = credential = ""  # of whom and of what was told last, for "her phone number is" and "the new one is"
    for sentence in stated(message):
        for category, confidence, rule in _RULES:
            for match in rule.finditer(sentence):
                said = {name: value or "" for name, value in match.groupdict().items()}
                value, of = said["value"].strip().rstrip(".,;:!)"), said.get("of", "")
                if category == "name":
                    subject = of
                elif said.get("whose", "").lower() in ("her", "his", "its", "their"):
                    of = of or subject
                    if not of:
                        continue
                name = {
                    "name": f"{of} name",
                    "decision": f"{of} decision",
                    "task": f"task {' '.join(value.split()[:5])}",
                }
                about = name.get(category) or f"{of} {said.get('before', '')} {said.get('noun', '')}"
                if category == "secret":
                    about = credential = about if said.get("noun") else credential
                key = key_of(about)
                if key and (category != "secret" or _is_secret(value)) and (category != "number" or _is_number(value)):
                    by, is_secret = f"rule:{category}", category == "secret"
                    found.setdefault(key, Statement(key, value, category, sentence, by, confidence, is_secret))
    return list(found.values())


def _is_secret(value: str) -> bool:
    """Whether a word can be a credential: it has a digit, or is written as no word is."""
    is_odd = any(c.isdigit() for c in value) or (value[1:] != value[1:].lower() and value != value.upper())
    return is_odd and "%" not in value


def _is_number(value: str) -> bool:
    return sum(c.isdigit() for c in value) > 3


def is_credential(key: str) -> bool:
    """Whether a key names a credential: what it opens is for nobody else."""
    return bool(re.search(rf"\b(?:{_NOUN})\b", key.replace("_", " "), re.IGNORECASE))


def key_of(text: str) -> str:
    """A key in snake case, without words that every key could have."""
    words = re.findall(r"\w+", re.sub(r"['’]s\b", "", text.lower()).replace("_", " "))
    return "_".join(word for word in words if word not in _DROPPED)[:_MOST_KEY].strip("_")
