"""The words by which people change the subject, come back to one, go on or begin. English so far; another language is
another table. Pure: no vectors, no notes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from simplemem.note.words import STOP_WORDS

_MOST_LABEL: Final = 50
_BACK_WITHIN: Final = 90  # characters of a message in which a return is announced

_CHAT: Final = frozenset(
    """hey hi hello wow yeah yep yup yes thanks thank great good nice cool awesome amazing glad love lovely sounds sound
    sure ok okay oh well hmm haha lol please like got get know think thing things something anything lot much see way
    going go gonna make made makes want need let even still one would take keep time definitely totally absolutely sorry
    right day today say said tell talk feel look looks looking really anyway don't it's i'm that's you're i've what's
    didn't can't there's i'd i'll let's""".split()
)
_EMPTY: Final = STOP_WORDS | _CHAT
_TASKS: Final = _EMPTY | frozenset(
    "build help plan write automate give show explain recommend find choose move please".split()
)
# What a message begins with, or has in it (news), as alternatives of one pattern each.
_ENGLISH: Final = {
    "shift": """any(?:way|how|ways)|by the way|btw|incidentally|moving on|before i forget|while i'm at it|now then|
        (?:totally |completely |quite )?unrelated(?:ly)?|not related|apropos of nothing|enough (?:of|about) (?:that|this)|
        (?:(?:i have )?an? |one more )?(?:(?:whole|completely|totally|quite) )?(?:different|new|another|other|unrelated|
        separate|side) (?:topic|subject|question|matter|thing|note)|
        next(?::| (?:topic|subject))|(?:leaving|putting|setting) (?:that|this|it) aside|
        (?:on|in) (?:an?other|a different|an unrelated) (?:note|subject|topic|matter)|
        (?:for |speaking of )?something (?:completely |totally |quite )?(?:else|different)|
        (?:to )?(?:chang|switch)(?:e|ing) (?:the |of )?(?:topics?|subjects?|gears?)|
        (?:a )?(?:quick )?change of (?:topic|subject)|
        (?:can|could|let's|let us) (?:we )?(?:talk about something else|change the subject)""",
    "greeting": "hey|hi|hello|hiya|yo|good (?:morning|afternoon|evening|day)|greetings|long time",
    "opening": """my|our|i(?:'d| would) like|i (?:want|need|have|bought|just)|we (?:want|need|have)|we(?:'ve|'re| are)|
        i(?:'m| am) (?:learning|planning|trying|looking|writing|building|working|thinking|an?)|
        i(?:'ve| have) (?:got|been|written|just|started|decided)|there(?:'s| is)|what(?:'s| is) the best|(?:please )?help me|
        (?:can|could|would) you (?:please )?(?:help|make|write|explain|recommend|plan|give me|show me)""",
    "follow": """and|but|so|or|then|also|what about|how about|thank(?:s| you)|ok(?:ay)?|yes|yeah|yep|yup|no|nope|wow|woah|
        oh|aw+|haha|that|this|these|those|it|they|he|she|sure|right|great|good|cool|nice|awesome|amazing|sounds|absolutely|
        definitely|totally|exactly|agreed|of course|for sure|glad|congrats|really|why|love|you(?:'re|'ve)?|
        (?:is|does) (?:it|that)""",
    "news": r"""long time|since we (?:last )?(?:talked|chatted|spoke|met|caught)|last (?:time we|chat|talk)|guess what|
        how (?:have|are) you|how(?:'ve|'re) you|how's (?:it going|everything|life|your)|
        hope (?:you|all|every)|been (?:up to|a while|ages)|
        what's (?:up|new)|catch(?:ing)? up|(?:good|great|nice|lovely) to (?:see|hear|talk|chat)|you won't believe|yesterday|
        the other day|(?:last|this|past) (?:week(?:end)?|month|night|\w{3,6}day)|few (?:days|weeks)|some news|happened""",
}
_BACK: Final = """(?:(?:go|going|come|coming|get|getting|jump|circle|circling|switch|switching) )?back (?:to|on|at|with)|
    (?:about|remember|still on)(?= (?:the|our|my|that|this|those|your) )|re:?|return(?:ing)? to|revisit(?:ing)?|
    pick(?:ing)? up|resum(?:e|ing)|reopen(?:ing)?|continu(?:e|ing) with|as for|with (?:regard|respect) to|
    regarding|concerning|speaking of|on the (?:subject|topic|matter) of|(?:again|once more) (?:about|on|to)|
    more (?:about|on)|follow(?:ing)?[- ]up (?:on|to)|where (?:were|did) we (?:stop |get to )?(?:with|on)|
    (?:earlier |before |last time )?we (?:(?:were talking|talked|spoke) (?:about|of)|discussed)|
    (?:(?:another|one more|a|quick) )?(?:question|thing) (?:about|on|regarding)"""
_LEAD: Final = """ok|okay|so|now|anyway|and|well|let's|let us|let me|can we|could we|shall we|i want to|i'd like to|to|
    please|we should|one more thing|i'm|i (?:still )?have"""


def _pattern(text: str) -> str:
    return " ".join(text.split()).replace("| ", "|")


def _begins(kind: str) -> re.Pattern[str]:
    lead = r"(?:(?:ok|okay|so|well|right|oh|and|now)\W{1,3}){0,3}" if kind == "shift" else ""
    return re.compile(rf"\W{{0,9}}{lead}(?:{_pattern(_ENGLISH[kind])})(?!\w|'\w)", re.IGNORECASE)


SHIFT, GREETING, OPENING, FOLLOW = map(_begins, ("shift", "greeting", "opening", "follow"))
NEWS = re.compile(rf"\b(?:{_pattern(_ENGLISH['news'])})\b", re.IGNORECASE)
_RETURN = re.compile(
    rf"\W{{0,9}}(?:(?:{_pattern(_LEAD)})[ ,.:;-]{{1,3}}){{0,4}}(?:{_pattern(_BACK)}) ([^:,.?!;\n]{{2,60}})",
    re.IGNORECASE,
)
_AGAIN = re.compile(r"\W{0,9}([^:,.?!;\n]{2,50}),? again *[:,.]", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")


@lru_cache(maxsize=256)
def _content(text: str) -> tuple[str, ...]:
    words = (word.replace("’", "'") for word in _WORD.findall(text.lower()))
    return tuple(w for w in words if len(w) > 1 and w not in _EMPTY and w.split("'")[0] not in _EMPTY)


def content_words(text: str) -> list[str]:
    """What a text is about: its words in order, without those that hold sentences and chats together."""
    return list(_content(text))


def names_in(text: str) -> set[str]:
    """Words with a capital where no sentence begins."""
    return set(_NAME.findall(text))


def back_to(message: str) -> list[str] | None:
    """What a message says it goes back to, in content words; none of them for "that thing". None if it says no such
    thing."""
    head = message[:_BACK_WITHIN]
    found = _RETURN.match(head) or _AGAIN.match(head)
    return content_words(found[1]) if found else None


def label_of(message: str) -> str:
    """A label of words that were used: the first clause that says something, from its first such word on."""
    said = message[:1000]
    while cue := SHIFT.match(said) or GREETING.match(said):
        said = said[cue.end() :]
    for clause in (*re.split(r"[.!?:;\n]|, ", said), said):
        words = list(_WORD.finditer(clause))
        telling = [word for word in words if _content(word[0]) and word[0].lower() not in _TASKS]
        if len(telling) > 1:
            start = telling[0].start()
            ends = [word.end() for word in telling if word.end() - start <= _MOST_LABEL]
            label = clause[start : ends[-1] if ends else start + _MOST_LABEL]
            return label[:1].upper() + label[1:]
    return " ".join((said if said.strip() else message).split())[:_MOST_LABEL].strip() or "Conversation"


def keywords_of(messages: Sequence[str]) -> list[str]:
    """At most five words: those of most messages, the earliest first."""
    counts = Counter(word for message in messages for word in dict.fromkeys(content_words(message)))
    return [word for word, _ in counts.most_common(5)]
