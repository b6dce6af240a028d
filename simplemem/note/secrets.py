"""Find what looks like a password, key or token in a text. Pure, and in time that grows with the text alone.

It is a net with wide meshes on purpose: what is made up, a hash, a UUID or prose passes, because a warning that is
often wrong is not read. No value found here is ever shown: `shown` has a few first letters and the length.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple


class Secret(NamedTuple):
    """Something that looks secret: what it is, and where. `shown` may be printed, the text between the offsets not."""

    kind: str
    line: int
    start: int
    end: int
    shown: str


# Tokens that say by their first letters whose they are: the kind, those letters, what follows them.
_ISSUED = tuple(
    (kind, letters, re.compile(rf"(?<![\w-]){re.escape(letters)}({rest})(?![A-Za-z0-9])", re.ASCII))
    for kind, several, rest in (
        ("AWS access key", "AKIA ASIA", r"[A-Z2-7]{16}+"),
        ("Google key", "AIza GOCSPX- ya29.", r"[0-9A-Za-z_.-]{20,2000}+"),
        ("Azure storage key", "AccountKey=", r"[0-9A-Za-z+/]{60,120}+={0,2}+"),
        ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"[0-9A-Za-z_]{22,255}+"),
        ("GitLab token", "glpat- gldt- glrt-", r"[0-9A-Za-z_.-]{20,255}+"),
        ("Slack token", "xoxa- xoxb- xoxe- xoxp- xoxr- xoxs- xapp-", r"[0-9A-Za-z-]{20,255}+"),
        ("webhook", "hooks.slack.com/services/ discord.com/api/webhooks/", r"[\w/-]{40,120}+"),
        ("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"[0-9A-Za-z+/]{16,255}+"),
        ("Anthropic key", "sk-ant-", r"[0-9A-Za-z_-]{20,255}+"),
        ("OpenAI key", "sk-proj- sk-svcacct- sk-", r"[0-9A-Za-z_-]{32,255}+"),
        ("Hugging Face token", "hf_", r"[0-9A-Za-z]{30,60}+"),
        ("npm token", "npm_", r"[0-9A-Za-z]{36}+"),
        ("PyPI token", "pypi-AgE", r"[0-9A-Za-z_-]{40,2000}+"),
        ("API key", "sk-or-v1- gsk_ pplx- xai- ntn_ lin_api_ glsa_ dop_v1_ shpat_", r"[0-9A-Za-z_]{32,128}+"),
        ("age secret key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,70}+"),
        ("JSON web token", "eyJ", r"[\w-]{10,4000}+\.eyJ[\w-]{10,8000}+\.[\w-]{16,2000}+"),
    )
    for letters in several.split()
)
_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LINE = re.compile(r"-----|[0-9A-Za-z+/]{40}")

# `scheme://user:password@host`
_IN_ADDRESS = re.compile(r"://([^\s/:@\"'<>`]{0,100}+):([^\s/@\"'<>`]{3,200}+)@(?![\w.]*\bexample\b)", re.IGNORECASE)

# Words that a password or key stands after. `token` is weaker: it stands in much prose and code.
_WORDS = {
    "password": (
        "password", "passwd", "passphrase", "pwd", "passwort", "kennwort", "mot de passe", "contraseña", "senha",
        "wachtwoord", "hasło", "пароль", "密码", "密碼", "パスワード", "비밀번호",
    ),
    "key": (
        "apikey", "api_key", "api-key", "api key", "access_key", "secret_key", "access_token", "auth_token",
        "client_secret", "secret",
    ),
    "token": ("token",),
}  # fmt: skip
_TEXT = r"[ \t]{0,8}[\"'`*_]{0,3}([^\s\"'`|,;，。]{8,256}+)"
_VALUE = re.compile(
    r"(?:[_-]?(?:key|token|prod|dev|live|test|value)){0,2}"
    rf"[\"'`*_]{{0,3}}[ \t]{{0,8}}(?:::(?=[ \t])|[:=：](?!:)|\|)[ \t]{{0,8}}[\"'`*_|]{{0,3}}{_TEXT}",
    re.IGNORECASE,
)
_IN_PROSE = re.compile(
    rf"[*_]{{0,3}}[ \t]{{1,3}}(?:is|was|ist|war|lautet|est|es)[ \t]{{0,3}}[:：]?[*_]{{0,3}}{_TEXT}", re.IGNORECASE
)

_MADE_UP = re.compile(
    r"x{4}|\*{3}|\.{3}|…|[<>]|\$[{(]|\{\{|example|placeholder|change.?me|your[-_. ]|redacted|dummy|sample|insert"
    r"|01234567|12345678|abcdefg",
    re.IGNORECASE,
)
# A word about a value; where the value is kept; a UUID, a date, a call.
_NO_VALUE = re.compile(
    r"(?i:(?:pass(?:word|wort|wd)?|secret|token|user(?:name)?|admin|root|postgres|guest|test|demo|key|hunter2|foo|bar"
    r"|foobar|none|null|true|false)\d{0,4}[!.]?$)"
    r"|[\[{(<$%~/&\\#]|\.{1,2}/|https?://|env[:.]|op://|vault:|file:|process\.env|os\."
    r"|(?i:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$)|\d{4}-\d\d-\d\d(?:[T_].*)?$|[A-Za-z_][\w.]*[(\[]"
)
_KEY_LETTERS = re.compile(r"[0-9A-Za-z_./+=~:-]{16,256}")
_NAMES = re.compile(r"(?:[A-Za-z_]++\d{0,2}[._/-])*+[A-Za-z_]+\d{0,2}[.:]?")
_HEX = re.compile(r"[0-9a-fA-F]{32,128}")


def find_secrets(text: str) -> list[Secret]:
    """What looks secret in a text, in the order in which it stands there."""
    found: dict[int, tuple[int, str, int]] = {}  # by where it ends, so that the better known of two is kept
    for start, end, kind, public in (*_issued(text), *_after_words(text)):
        found.setdefault(end, (start, kind, public))
    secrets: list[Secret] = []
    line, at, covered = 1, 0, 0
    for end, (start, kind, public) in sorted(found.items(), key=lambda item: (item[1][0], -item[0])):
        if end > covered:
            gap = text[at:start]
            line += gap.count("\n") + gap.count("\r") - gap.count("\r\n")
            at, covered = start, end
            shown = f"{text[start : start + min(4, public)]}… ({end - start} characters)"
            secrets.append(Secret(kind, line, start, end, shown))
    return secrets


def added_secrets(before: str, after: str) -> list[Secret]:
    """What looks secret in a text and did not stand in the one it replaces."""
    found = find_secrets(after)
    there = {before[secret.start : secret.end] for secret in find_secrets(before)} if found else set()
    return [secret for secret in found if after[secret.start : secret.end] not in there]


_Found = Iterator[tuple[int, int, str, int]]
"""Start, end, kind, and how many of its first letters are no secret."""


def _issued(text: str) -> _Found:
    """Keys that say by their form what they are."""
    for begin in _PEM_BEGIN.finditer(text):
        line = _PEM_LINE.search(text, begin.end(), begin.end() + 400)
        if line is not None and line[0] != "-----":
            end = text.find("-----", line.end(), line.end() + 20_000)
            yield begin.start(), end if end >= 0 else line.end(), "private key", 4
    for kind, letters, pattern in _ISSUED:
        for at in _places(text, letters):
            match = pattern.match(text, at)
            if match is not None and _is_drawn(match[1]):
                yield at, match.end(), kind, len(letters)
    for match in _IN_ADDRESS.finditer(text):
        user, password = match.groups()
        if password != user and not _MADE_UP.search(password) and not _NO_VALUE.match(password):
            yield match.start(2), match.end(2), "password in an address", 0


def _after_words(text: str) -> _Found:
    lowered = text.replace("İ", "i").lower()  # the one letter whose small form is longer
    for kind, words in _WORDS.items():
        for word in words:
            for at in _places(lowered, word):
                match = _VALUE.match(text, at + len(word))
                in_prose = None if match or kind != "password" else _IN_PROSE.match(text, at + len(word))
                if found := match or in_prose:
                    value = found[1].rstrip(")]}>.*_:")
                    if _is_a_value(value, "prose" if in_prose else kind):
                        yield found.start(1), found.start(1) + len(value), kind, 0


def _is_a_value(value: str, kind: str) -> bool:
    """Whether what stands after `password:` or `api_key =` is one, not a word about it."""
    if len(value) < 8 or _MADE_UP.search(value) or _NO_VALUE.match(value):
        return False
    figures = sum(map(str.isdigit, value))
    if kind == "password":
        return figures > 0 and any(map(str.isalpha, value)) and not _HEX.fullmatch(value) and _bits(value) >= 2.5
    if kind == "prose":  # it must be plain to see: small and capital letters and figures, and no name of a thing
        mixed = any(map(str.islower, value)) and any(map(str.isupper, value)) and figures > 0
        return mixed and _NAMES.fullmatch(value) is None and _bits(value) >= 2.5
    if _KEY_LETTERS.fullmatch(value) is None or _NAMES.fullmatch(value):
        return False
    too_weak = kind == "token" and (len(value) < 20 or _HEX.fullmatch(value))
    return not too_weak and figures >= 2 and _is_drawn(value)


def _is_drawn(value: str) -> bool:
    """Whether a value was drawn by lot rather than written: letters and figures, many different ones, nothing made
    up."""
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return mixed and _MADE_UP.search(value) is None and _bits(value) >= 3.0


def _bits(value: str) -> float:
    """Shannon's entropy of a value, in bits a character."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def _places(text: str, letters: str) -> Iterator[int]:
    at = text.find(letters)
    while at >= 0:
        yield at
        at = text.find(letters, at + len(letters))
