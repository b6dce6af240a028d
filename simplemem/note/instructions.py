"""Find sentences that tell an agent what to do instead of telling what is known. Pure.

A note is read by every agent that finds it. A sentence such as "ignore all previous instructions"
in a note may have been written to take control of those agents. The rules recognise common forms
only: that they find nothing does not show that a note is harmless.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MAX_QUOTE: Final = 100  # characters

_IGNORE_ORDERS: Final = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}"
    r"\b(?:instructions?|prompts?|rules?|guidelines?|directives?|restrictions?)\b"
    r"|\b(?:ignorier\w*|missachte\w*|vergiss)\b[^.\n]{0,40}\b(?:anweisung\w*|regeln?|vorgaben?)\b"
    r"|\b(?:ignora|olvida)\w*\b[^.\n]{0,40}\b(?:instrucci\w+|reglas?)\b"
    r"|\b(?:ignore[zr]?|oublie[zr]?)\b[^.\n]{0,40}\b(?:instructions?|consignes?|r[eè]gles?)\b"
)
_HIDE_FROM_USER: Final = (
    r"\b(?:do not|don't|never|without)\b[^.\n]{0,20}\b(?:tell|telling|mention\w*|inform\w*|"
    r"reveal\w*|show\w*|asking|ask)\b[^.\n]{0,20}\b(?:the )?(?:user|human|owner|operator)s?\b"
)
_NEW_ROLE: Final = (
    r"\b(?:you are now|from now on,? you|act as (?:an? )?(?:unrestricted|root|admin\w*|dan)\b"
    r"|pretend (?:to be|you are)|new (?:system )?(?:instructions?|prompt)\s*:"
    r"|(?:important )?(?:instructions?|note|message|attention) (?:to|for) (?:the |all |any )?"
    r"(?:ai|agents?|assistants?|llms?|models?)\b)"
)
_ROLE_MARKS: Final = (
    r"<\|?/?(?:system|im_start|im_end|assistant|user)\|?>|\[/?INST\]|<<SYS>>"
    r"|(?m:^\s{0,3}#{0,4}\s?(?:system|assistant)\s?(?:prompt)?\s?:\s)"
)
_SEND_AWAY: Final = (
    r"\b(?:send|post|upload|forward|exfiltrate|leak|e-?mail|transmit|append)\b[^.\n]{0,60}"
    r"\b(?:notes?|contents?|conversations?|keys?|credentials?|passwords?|secrets?|tokens?|files?"
    r"|data|memor(?:y|ies)|history|environment)\b[^\n]{0,60}"
    r"(?:https?://|[\w.+-]{1,64}@[\w-]{1,64}\.\w)"
)
_RUN_COMMAND: Final = r"\b(?:curl|wget)\b[^\n|]{0,200}\|\s{0,3}(?:sudo )?(?:ba|z)?sh\b"

_RULES: Final = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        ("tells agents to ignore their instructions", _IGNORE_ORDERS),
        ("tells agents to keep something from the user", _HIDE_FROM_USER),
        ("gives agents a role or addresses them", _NEW_ROLE),
        ("imitates the marks of a prompt", _ROLE_MARKS),
        ("tells agents to send something away", _SEND_AWAY),
        ("runs a program from the web", _RUN_COMMAND),
    )
)


class Instruction(NamedTuple):
    """A sentence that may be meant as an order to agents: what it does, its line, and its words."""

    what: str
    line: int
    quote: str


def find_instructions(text: str) -> list[Instruction]:
    """Return what may be meant as an order to agents in a text, at most one per kind.

    Lines count from 1.
    """
    found = []
    for what, pattern in _RULES:
        match = pattern.search(text)
        if match is not None:
            line = text.count("\n", 0, match.start()) + 1
            quote = " ".join(match[0].split())[:_MAX_QUOTE]
            found.append(Instruction(what, line, quote))
    return found


def added_instructions(old_text: str, new_text: str) -> list[Instruction]:
    """Return what may be meant as an order to agents in the new text and was not in the old one."""
    old_lines = set(old_text.split("\n"))
    new_lines = [line if line not in old_lines else "" for line in new_text.split("\n")]
    return find_instructions("\n".join(new_lines))
