"""Find what looks like a password, key or token in a text. Pure, and in time that grows with the text alone.

It is a net with wide meshes on purpose: what is made up, a hash, a UUID or prose passes, because a warning that is often
wrong is not read. No value found here is ever shown: `shown` has a few first letters and the length.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest


@dataclass(frozen=True, slots=True)
class Secret:
    """Something that looks secret: what it is, and where. `shown` may be printed, the text between the offsets not."""

    kind: str
    line: int
    start: int
    end: int
    shown: str


# Tokens that say by their first letters whose they are: (kind, those letters, what follows them).
_ISSUED = tuple(
    (kind, letters, re.compile(rf"({rest})(?![A-Za-z0-9])"))
    for kind, letters, rest in (
        ("AWS access key", "AKIA", r"[A-Z2-7]{16}+"),
        ("AWS access key", "ASIA", r"[A-Z2-7]{16}+"),
        ("Google API key", "AIza", r"[0-9A-Za-z_-]{35}+"),
        ("Google OAuth secret", "GOCSPX-", r"[0-9A-Za-z_-]{20,60}+"),
        ("Google OAuth token", "ya29.", r"[0-9A-Za-z_.-]{30,2000}+"),
        ("Azure storage key", "AccountKey=", r"[0-9A-Za-z+/]{60,120}+={0,2}+"),
        *(("GitHub token", f"gh{letter}_", r"[0-9A-Za-z]{36,255}+") for letter in "pousr"),
        ("GitHub token", "github_pat_", r"[0-9A-Za-z_]{22,255}+"),
        ("GitLab token", "glpat-", r"[0-9A-Za-z_.-]{20,255}+"),
        ("GitLab token", "gldt-", r"[0-9A-Za-z_-]{20,255}+"),
        ("GitLab token", "glrt-", r"[0-9A-Za-z_-]{20,255}+"),
        *(("Slack token", f"xox{letter}-", r"[0-9A-Za-z-]{20,255}+") for letter in "abeprs"),
        ("Slack token", "xapp-", r"[0-9A-Za-z-]{20,255}+"),
        ("Slack webhook", "hooks.slack.com/services/", r"T[0-9A-Z]{6,20}+/B[0-9A-Z]{6,20}+/[0-9A-Za-z]{20,40}+"),
        *(
            ("Stripe key", f"{key}_{mode}_", r"[0-9A-Za-z]{16,255}+")
            for key in ("sk", "rk")
            for mode in ("live", "test")
        ),
        ("Stripe webhook secret", "whsec_", r"[0-9A-Za-z+/]{24,255}+"),
        ("Anthropic key", "sk-ant-", r"[0-9A-Za-z_-]{20,255}+"),
        ("OpenAI key", "sk-proj-", r"[0-9A-Za-z_-]{20,255}+"),
        ("OpenAI key", "sk-svcacct-", r"[0-9A-Za-z_-]{20,255}+"),
        ("OpenAI key", "sk-", r"[0-9A-Za-z]{32,255}+"),
        ("API key", "sk-or-v1-", r"[0-9a-f]{40,128}+"),
        ("API key", "gsk_", r"[0-9A-Za-z]{40,80}+"),
        ("Hugging Face token", "hf_", r"[0-9A-Za-z]{30,60}+"),
        ("npm token", "npm_", r"[0-9A-Za-z]{36}+"),
        ("PyPI token", "pypi-AgE", r"[0-9A-Za-z_-]{40,2000}+"),
        ("SendGrid key", "SG.", r"[0-9A-Za-z_-]{16,32}+\.[0-9A-Za-z_-]{32,64}+"),
        ("DigitalOcean token", "dop_v1_", r"[0-9a-f]{64}+"),
        *(("Shopify token", f"{letters}_", r"[0-9a-fA-F]{32}+") for letters in ("shpat", "shpca", "shppa", "shpss")),
        ("Docker token", "dckr_pat_", r"[0-9A-Za-z_-]{27,64}+"),
        ("Notion token", "ntn_", r"[0-9A-Za-z]{40,60}+"),
        ("Linear key", "lin_api_", r"[0-9A-Za-z]{40}+"),
        ("Grafana token", "glsa_", r"[0-9A-Za-z]{32}+_[0-9a-fA-F]{8}+"),
        ("API key", "pplx-", r"[0-9A-Za-z]{40,64}+"),
        ("API key", "xai-", r"[0-9A-Za-z]{60,100}+"),
        *(
            ("Discord webhook", f"{host}.com/api/webhooks/", r"\d{17,20}+/[0-9A-Za-z_-]{60,80}+")
            for host in ("discord", "discordapp")
        ),
        ("age secret key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,70}+"),
        ("JSON web token", "eyJ", r"[0-9A-Za-z_-]{10,4000}+\.eyJ[0-9A-Za-z_-]{10,8000}+\.[0-9A-Za-z_-]{16,2000}+"),
    )
)
_AZURE_SECRET = re.compile(r"[0-9A-Za-z_~.-]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34}+(?![0-9A-Za-z_~.-])")

_TELEGRAM = re.compile(r"[^:]{0,3}(?<![0-9A-Za-z])(\d{8,10}:AA[0-9A-Za-z_-]{33})(?![0-9A-Za-z_-])")
# `Authorization: Bearer ...` and `Authorization: Basic ...`, from the second word on
_BEARER = re.compile(r"bearer[ \t]{1,4}([0-9A-Za-z._~+/-]{20,4000}+)", re.IGNORECASE)
_BASIC = re.compile(r"basic[ \t]{1,4}([0-9A-Za-z+/]{12,400}+)", re.IGNORECASE)

_PEM = "PRIVATE KEY"
_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LONGEST = 20_000
_BASE64_LINE = re.compile(r"[0-9A-Za-z+/]{40}")

# `scheme://user:password@host`
_IN_ADDRESS = re.compile(r"://([^\s/:@\"'<>`]{0,100}+):([^\s/@\"'<>`]{3,200}+)@([^\s/:\"'<>`)]{1,200}+)")

# Words that a password or key stands after. The others are weaker: `token` and `secret` stand in much prose and code.
_PASSWORDS = (
    "password", "passwd", "passphrase", "pwd", "passwort", "kennwort", "mot de passe", "contraseña", "senha",
    "wachtwoord", "hasło", "пароль", "密码", "密碼", "パスワード", "비밀번호",
)  # fmt: skip
_KEYS = ("apikey", "api_key", "api-key", "api key", "access_key", "secret_key", "access_token", "auth_token", "client_secret", "secret")  # fmt: skip # noqa: E501
_TOKENS = ("token",)
_SHORT = ("pass", "pw")  # begin and end many another word, so they stand alone, and what follows must be a plain case
_VALUE = re.compile(
    r"(?:[_-]?(?:key|token|prod|dev|live|test|value)){0,2}"
    r"[\"'`*_]{0,3}[ \t]{0,8}(?:::(?=[ \t])|[:=：](?!:)|\|)[ \t]{0,8}[\"'`*_|]{0,3}[ \t]{0,8}"
    r"[\"'`]?([^\s\"'`|,;，。]{8,256}+)",
    re.IGNORECASE,
)
# `the password is ...`, `password for the router: ...`, `password (guests): ...`
_IN_PROSE = re.compile(
    r"[*_]{0,3}[ \t]{1,3}(?:(?:is|was|ist|war|lautet|est|es)[ \t]{0,3}[:：]?"
    r"|(?:for|of|on|to|at|für|von|vom|zum)[ \t][^\n:=|：]{1,40}[:=：]|\([^\n()]{1,40}\)[ \t]{0,3}[:=：])"
    r"[*_]{0,3}[ \t]{0,8}[\"'`*_]{0,3}([^\s\"'`|,;，。]{8,256}+)",
    re.IGNORECASE,
)
_KEY_LETTERS = re.compile(r"[0-9A-Za-z_./+=~:-]{16,256}")

_MADE_UP = re.compile(
    r"x{4,}|\*{3,}|\.{3}|…|[<>]|\$[{(]|\{\{|example|placeholder|change.?me|your[-_. ]|redacted|dummy|sample|insert"
    r"|01234567|12345678|abcdefg",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"(?:pass(?:word|wort|wd)?|secret|token|user(?:name)?|admin|root|postgres|guest|test|demo|key|hunter2|foo|bar|foobar"
    r"|none|null|true|false)\d{0,4}[!.]?",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"[\[{(<$%~/&\\#]|\.{1,2}/|https?://|env[:.]|op://|vault:|file:|process\.env|os\.")
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[]")
_NAMES = re.compile(r"(?:[A-Za-z_]++\d{0,2}[._/-])*+[A-Za-z_]+\d{0,2}[.:]?")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T_].*)?")
_EXAMPLE_HOST = re.compile(r"(?:.*\.)?(?:example(?:\.\w{2,3})?|invalid|test|host(?:name)?)", re.IGNORECASE)


def find_secrets(text: str) -> list[Secret]:
    """What looks secret in a text, in the order in which it stands there."""
    found: dict[int, tuple[int, str, int]] = {}  # by where it ends, so that the better known of two is kept
    for start, end, kind, public in (*_private_keys(text), *_issued(text), *_in_addresses(text), *_after_words(text)):
        found.setdefault(end, (start, kind, public))
    return _told(text, found)


def added_secrets(before: str, after: str) -> list[Secret]:
    """What looks secret in a text and did not stand in the one it replaces."""
    found = find_secrets(after)
    if not found or not before:
        return found
    there = {before[secret.start : secret.end] for secret in find_secrets(before)}
    return [secret for secret in found if after[secret.start : secret.end] not in there]


def _told(text: str, found: dict[int, tuple[int, str, int]]) -> list[Secret]:
    secrets: list[Secret] = []
    line, at, covered = 1, 0, 0
    for end, (start, kind, public) in sorted(found.items(), key=lambda item: (item[1][0], -item[0])):
        if end <= covered:
            continue
        gap = text[at:start]
        line += gap.count("\n") + gap.count("\r") - gap.count("\r\n")
        at, covered = start, end
        shown = f"{text[start : start + min(4, public)]}… ({end - start} characters)"
        secrets.append(Secret(kind, line, start, end, shown))
    return secrets


_Found = Iterator[tuple[int, int, str, int]]
"""Start, end, kind, and how many of its first letters are no secret."""


def _private_keys(text: str) -> _Found:
    if _PEM not in text:
        return
    begins = list(_PEM_BEGIN.finditer(text))
    for begin, following in zip_longest(begins, begins[1:]):
        stop = min(begin.end() + _PEM_LONGEST, following.start() if following else len(text))
        end = text.find("-----END ", begin.end(), stop)
        inside = end if end >= 0 else min(stop, begin.end() + 400, len(text))
        key = _BASE64_LINE.search(text, begin.end(), inside)
        if key is not None:
            yield begin.start(), end if end >= 0 else key.end(), "private key", 4


def _issued(text: str) -> _Found:
    for kind, letters, rest in _ISSUED:
        for at in _places(text, letters):
            match = rest.match(text, at + len(letters)) if not _is_within_a_word(text, at) else None
            if match is not None and _is_drawn(match[1], 3.0):
                yield at, match.end(), kind, len(letters)
    for at in _places(text, ":AA"):
        match = _TELEGRAM.match(text, max(at - 11, 0), at + 37)
        if match is not None:
            yield match.start(1), match.end(), "Telegram bot token", at - match.start(1)
    for at in _places(text, "Q~"):
        match = _AZURE_SECRET.match(text, at - 4) if at >= 4 else None
        if match is not None and _is_drawn(match[0], 3.0):
            yield at - 4, match.end(), "Azure client secret", 0


def _in_addresses(text: str) -> _Found:
    for match in _IN_ADDRESS.finditer(text):
        user, password, host = match.groups()
        if password == user or _EXAMPLE_HOST.fullmatch(host):
            continue
        if not (_MADE_UP.search(password) or _NO_VALUE.fullmatch(password) or _ELSEWHERE.match(password)):
            yield match.start(2), match.end(2), "password in an address", 0


def _after_words(text: str) -> _Found:
    lowered = text.replace("İ", "i").lower()  # the one letter whose small form is longer
    for words, kind in ((_PASSWORDS, "password"), (_KEYS, "key"), (_TOKENS, "token")):
        for word in words:
            for at in _places(lowered, word):
                match = _VALUE.match(text, at + len(word))
                # `api_key=api_key=...`: the last of them has the value
                if match is None or f"{word}=" in (found := match[1].lower()) or f"{word}:" in found:
                    continue
                value = match[1].rstrip(".)]}>*_:" if kind != "password" else ")]}>")
                if _is_a_value(value, kind):
                    yield match.start(1), match.start(1) + len(value), kind, 0
    yield from _in_headers(text, lowered)
    for word in (*_PASSWORDS, *_SHORT):
        for at in _places(lowered, word):
            match = _IN_PROSE.match(text, at + len(word))
            if match is None and word in _SHORT and not _is_within_a_word(text, at):
                match = _VALUE.match(text, at + len(word))
            value = match[1].rstrip(")]}>.") if match is not None else ""
            if match is not None and _is_plainly_one(value):
                yield match.start(1), match.start(1) + len(value), "password", 0


def _in_headers(text: str, lowered: str) -> _Found:
    for at in _places(lowered, "bearer "):
        match = _BEARER.match(text, at)
        if (
            match
            and sum(c.isdigit() for c in match[1]) >= 3
            and _is_drawn(match[1], 3.5)
            and not _NAMES.fullmatch(match[1])
        ):
            yield match.start(1), match.end(), "token", 0
    for at in _places(lowered, "basic "):
        match = _BASIC.match(text, at) if "authorization" in lowered[max(at - 24, 0) : at] else None
        if match and _is_drawn(match[1], 3.0):
            yield match.start(1), match.end(), "password", 0


def _is_a_value(value: str, kind: str) -> bool:
    """Whether what stands after `password:` or `api_key =` is one, not a word about it."""
    if len(value) < 8 or _MADE_UP.search(value) or _NO_VALUE.fullmatch(value) or _ELSEWHERE.match(value):
        return False
    if _UUID.fullmatch(value) or _DATE.fullmatch(value) or _CALL.match(value):
        return False
    if kind == "password":
        mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
        return mixed and not _HEX.fullmatch(value) and _bits(value) >= 2.5
    if _KEY_LETTERS.fullmatch(value) is None or _NAMES.fullmatch(value):
        return False
    if kind == "token" and (len(value) < 20 or _HEX.fullmatch(value)):
        return False
    return sum(c.isdigit() for c in value) >= 2 and _is_drawn(value, 3.0)


def _is_plainly_one(value: str) -> bool:
    """Whether a value is a password wherever it stands: small and capital letters and figures, and no name of a thing."""
    mixed = any(c.islower() for c in value) and any(c.isupper() for c in value)
    return mixed and _NAMES.fullmatch(value) is None and _is_a_value(value, "password")


def _is_drawn(value: str, bits: float) -> bool:
    """Whether a value was drawn by lot rather than written: letters and figures, many different ones, nothing made up."""
    if not (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return value.isalpha() and len(value) >= 16 and _is_mixed_case(value) and not _MADE_UP.search(value)
    return not _MADE_UP.search(value) and _bits(value) >= bits


def _is_mixed_case(value: str) -> bool:
    """Small and capital letters in no order, as no word has them."""
    turns = sum(1 for a, b in pairwise(value) if a.islower() and b.isupper())
    return turns >= len(value) // 8


def _bits(value: str) -> float:
    """Shannon's entropy of a value, in bits a character."""
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)


def _is_within_a_word(text: str, at: int) -> bool:
    before = text[at - 1 : at] if at else ""
    return before.isalnum() or before in ("_", "-") if before else False


def _places(text: str, letters: str) -> Iterator[int]:
    at = text.find(letters)
    while at >= 0:
        yield at
        at = text.find(letters, at + len(letters))
