"""Find what looks like a secret: passwords, keys and tokens. Pure.

A warning that is often wrong is ignored, so placeholders, hashes, UUIDs and prose do not count as
secrets. Nothing in this module returns the text of a secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from simplemem.note.words import count_lines


class Secret(NamedTuple):
    """A part of a text that looks like a secret.

    `shown` is its public beginning and its length, such as `ghp_… (40 characters)`.
    """

    kind: str
    line: int
    start: int
    end: int
    shown: str  # what may be printed in its place


class _Candidate(NamedTuple):
    """A part of a text that may be reported as a secret."""

    start: int
    end: int
    kind: str
    public_length: int  # the number of characters at its beginning that are not secret


class _KeyFormat(NamedTuple):
    """A kind of key that is recognised by its prefix."""

    kind: str
    prefix: str
    rest: re.Pattern[str]


def _build_key_formats() -> list[_KeyFormat]:
    """Return the formats of the keys that providers issue, one for each prefix."""
    formats = []
    for kind, prefixes, rest in (
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
        (
            "API key",
            "sk-or-v1- gsk_ pplx- xai- ntn_ lin_api_ glsa_ dop_v1_ shpat_",
            r"[0-9A-Za-z_]{32,128}+",
        ),
        ("age secret key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,70}+"),
        ("JSON web token", "eyJ", r"[\w-]{10,4000}+\.eyJ[\w-]{10,8000}+\.[\w-]{16,2000}+"),
    ):
        pattern = re.compile(rf"(?P<rest>{rest})(?![A-Za-z0-9])", re.ASCII)
        formats += [_KeyFormat(kind, prefix, pattern) for prefix in prefixes.split()]
    return formats


_KEY_FORMATS: Final = _build_key_formats()

_PEM_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LINE_OR_END: Final = re.compile(r"-----|[0-9A-Za-z+/]{40}")
_MAX_PEM_HEADER_CHARACTERS: Final = 400
_MAX_PEM_CHARACTERS: Final = 20_000
_PEM_PUBLIC_LENGTH: Final = 4

# `scheme://user:password@host`
_PASSWORD_IN_ADDRESS: Final = re.compile(
    r"://(?P<user>[^\s/:@\"'<>`]{0,100}+):(?P<password>[^\s/@\"'<>`]{3,200}+)"
    r"@(?![\w.]*\bexample\b)",
    re.IGNORECASE,
)

# The words that a password or key follows. `token` is weaker: prose and code often contain it.
_LABELS: Final = {
    "password": (
        "password", "passwd", "passphrase", "pwd", "passwort", "kennwort", "mot de passe",
        "contraseña", "senha", "wachtwoord", "hasło", "пароль", "密码", "密碼",
        "パスワード", "비밀번호",
    ),
    "key": (
        "apikey", "api_key", "api-key", "api key", "access_key", "secret_key", "access_token",
        "auth_token", "client_secret", "secret",
    ),
    "token": ("token",),
}  # fmt: skip
_VALUE_TEXT: Final = r"[ \t]{0,8}[\"'`*_]{0,3}(?P<value>[^\s\"'`|,;，。]{8,256}+)"
# Behind a label: the rest of its name (`_prod`), the marks that close it, then a colon, an equals
# sign or the border of a table cell, and the value.
_ASSIGNED_VALUE: Final = re.compile(
    r"(?i)(?:[_-]?(?:key|token|prod|dev|live|test|value)){0,2}"
    r"[\"'`*_]{0,3}[ \t]{0,8}(?:::(?=[ \t])|[:=：](?!:)|\|)[ \t]{0,8}[\"'`*_|]{0,3}"
    rf"{_VALUE_TEXT}"
)
_VALUE_IN_PROSE: Final = re.compile(
    r"[*_]{0,3}[ \t]{1,3}(?:is|was|ist|war|lautet|est|es)[ \t]{0,3}[:：]?[*_]{0,3}"
    rf"{_VALUE_TEXT}",
    re.IGNORECASE,
)
# A value in quotation marks or backticks right behind the label, such as "password `value`".
_QUOTED_VALUE: Final = re.compile(
    r"[*_]{0,3}[ \t]{1,3}(?:(?P<mark>[\"'`])|[“„«])(?P<value>[^\s\"'`|“”„«»]{8,256}+)"
    r"(?(mark)(?P=mark)|[”“»])"
)
_PLACEHOLDER: Final = re.compile(
    r"(?i)x{4}|\*{3}|\.{3}|…|[<>]|\$[{(]|\{\{|example|placeholder|change.?me|your[-_. ]"
    r"|redacted|dummy|sample|insert|01234567|12345678|abcdefg"
)
# What such a value begins with, or consists of, is no secret.
_NO_VALUE: Final = re.compile(
    # a word about a value
    r"(?i:(?:pass(?:word|wort|wd)?|secret|token|user(?:name)?|admin|root|postgres|guest|test|demo"
    r"|key|hunter2|foo|bar|foobar|none|null|true|false)\d{0,4}[!.]?$)"
    # the place where the value is kept
    r"|[\[{(<$%~/&\\#]|\.{1,2}/|https?://|env[:.]|op://|vault:|file:|process\.env|os\."
    # a UUID
    r"|(?i:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$)"
    # a date
    r"|\d{4}-\d\d-\d\d(?:[T_].*)?$"
    # a call
    r"|[A-Za-z_][\w.]*[(\[]"
)
_KEY_CHARACTERS: Final = re.compile(r"[0-9A-Za-z_./+=~:-]{16,256}")
# Words with at most two digits behind each, such as `config/auth-v2.prod`, are a name or a path.
_NAMES: Final = re.compile(r"(?:[A-Za-z_]++\d{0,2}[._/-])*+[A-Za-z_]+\d{0,2}[.:]?")
_WORDS_AND_NUMBERS: Final = re.compile(r"(?:[a-z]++|\d++)(?:[._/-](?:[a-z]++|\d++))++")
_HEX: Final = re.compile(r"[0-9a-fA-F]{32,128}")

_MIN_VALUE_CHARACTERS: Final = 8
_MIN_TOKEN_CHARACTERS: Final = 20  # of a value with the label `token`
_MIN_PASSWORD_ENTROPY: Final = 2.5  # bits per character
_MIN_KEY_ENTROPY: Final = 3.0
_MAX_SHOWN_CHARACTERS: Final = 4


def find_secrets(text: str) -> list[Secret]:
    """Return what looks like a secret, in the order of the text. Takes linear time.

    Offsets count in `text`, lines from 1. A secret within another one is left out. Their text is
    not in the result, only what may be shown in its place.
    """
    # Candidates with the same end are one secret, found in two ways. The first of them stays: it
    # has the more precise kind.
    by_end: dict[int, _Candidate] = {}
    for candidate in (*_find_unlabelled(text), *_find_labelled(text)):
        by_end.setdefault(candidate.end, candidate)
    # Of several with the same start, the longest comes first, so that the others are within it.
    in_order = sorted(by_end.values(), key=lambda candidate: (candidate.start, -candidate.end))

    secrets = []
    line = 1
    counted_until = 0
    covered_until = 0
    for start, end, kind, public_length in in_order:
        if end <= covered_until:
            continue

        line += count_lines(text, counted_until, start)
        counted_until = start
        covered_until = end
        shown_length = min(_MAX_SHOWN_CHARACTERS, public_length)
        visible = text[start : start + shown_length]
        redacted = f"{visible}… ({end - start} characters)"
        secrets.append(Secret(kind, line, start, end, redacted))
    return secrets


def added_secrets(old_text: str, new_text: str) -> list[Secret]:
    """Return what looks like a secret in the new text, but not those that the old one contains.

    Offsets and lines are those of the new text.
    """
    secrets = find_secrets(new_text)
    if not secrets:
        return []

    old_values = {old_text[secret.start : secret.end] for secret in find_secrets(old_text)}
    return [secret for secret in secrets if new_text[secret.start : secret.end] not in old_values]


def _find_unlabelled(text: str) -> Iterator[_Candidate]:
    """Yield what is a secret by its form alone, without a label in front of it.

    These are private keys, keys with the prefix of an issuer, and passwords in addresses.
    """
    yield from _find_private_keys(text)
    yield from _find_prefixed_keys(text)
    yield from _find_passwords_in_addresses(text)


def _find_private_keys(text: str) -> Iterator[_Candidate]:
    """Yield the private keys in PEM format.

    A key may lack its end: then only its beginning, up to 40 characters of the key, is yielded.
    """
    for begin in _PEM_BEGIN.finditer(text):
        first_line = _PEM_LINE_OR_END.search(
            text,
            begin.end(),
            begin.end() + _MAX_PEM_HEADER_CHARACTERS,
        )
        if first_line is None or first_line[0] == "-----":
            continue  # no key follows: the BEGIN line is only mentioned
        end = text.find("-----", first_line.end(), first_line.end() + _MAX_PEM_CHARACTERS)
        if end < 0:
            end = first_line.end()
        yield _Candidate(begin.start(), end, "private key", _PEM_PUBLIC_LENGTH)


def _find_prefixed_keys(text: str) -> Iterator[_Candidate]:
    """Yield the keys whose prefix tells who issued them. Placeholders are left out."""
    for kind, prefix, rest_pattern in _KEY_FORMATS:
        if prefix not in text:
            continue
        for start in _find_all(text, prefix):
            previous = text[start - 1] if start else " "
            is_within_word = previous.isalnum() or previous in "_-"
            if is_within_word:
                continue
            rest = rest_pattern.match(text, start + len(prefix))
            if rest and _is_random(rest["rest"], _MIN_KEY_ENTROPY):
                yield _Candidate(start, rest.end(), kind, len(prefix))


def _find_passwords_in_addresses(text: str) -> Iterator[_Candidate]:
    """Yield the passwords in addresses such as `scheme://user:password@host`.

    Placeholders, and passwords that equal the user, are left out.
    """
    for address in _PASSWORD_IN_ADDRESS.finditer(text):
        password = address["password"]
        is_placeholder = password == address["user"] or _PLACEHOLDER.search(password)
        if not is_placeholder and not _NO_VALUE.match(password):
            start, end = address.span("password")
            yield _Candidate(start, end, "password in an address", 0)


def _find_labelled(text: str) -> Iterator[_Candidate]:
    """Yield the values that follow a label, such as `password:` or `api_key =`.

    Only values that look like a secret are yielded; prose and placeholders are not.
    """
    # The letter İ is the only one whose lower case is longer, which would move all offsets.
    lowered = text.replace("İ", "i").lower()
    for kind, labels in _LABELS.items():
        for label in labels:
            if label not in lowered:
                continue
            for start in _find_all(lowered, label):
                candidate = _read_labelled(text, start + len(label), kind)
                if candidate is not None:
                    yield candidate


def _read_labelled(text: str, label_end: int, kind: str) -> _Candidate | None:
    """Return the secret that follows a label of this kind; None if none does.

    `label_end` is the offset behind the label. After the label of a password, the word `is` may
    stand in place of a colon, and no colon is needed before a value in quotation marks.
    """
    form = kind
    match = _ASSIGNED_VALUE.match(text, label_end)
    if match is None and kind == "password":
        form = "quoted"
        match = _QUOTED_VALUE.match(text, label_end)
    if match is None and kind == "password":
        form = "prose"
        match = _VALUE_IN_PROSE.match(text, label_end)
    if match is None:
        return None

    value = match["value"].rstrip(")]}>.*_:")
    if not _is_secret(value, form):
        return None
    start = match.start("value")
    return _Candidate(start, start + len(value), kind, 0)


def _is_secret(value: str, form: str) -> bool:
    """Return whether a value is a secret and not a word about one.

    `form` is the kind of its label ("password", "key" or "token"); for a password without a colon,
    it is "quoted" in quotation marks, and "prose" after `is`.
    """
    if len(value) < _MIN_VALUE_CHARACTERS or _NO_VALUE.match(value):
        return False

    if form == "password":
        return _is_labelled_password(value)
    if form == "quoted":
        return _is_quoted_password(value)
    if form == "prose":
        return _is_password_in_prose(value)
    if form == "token":
        return _is_token(value)
    return _is_key(value)


def _is_labelled_password(value: str) -> bool:
    """Return whether the value behind `password:` is a password and not the hash of one."""
    is_hash = _HEX.fullmatch(value) is not None
    return not is_hash and _is_random(value, _MIN_PASSWORD_ENTROPY)


def _is_quoted_password(value: str) -> bool:
    """Return whether a value in quotation marks is a password: not an identifier or a name."""
    is_identifier = value.isalnum() and value.islower()
    if is_identifier or _NAMES.fullmatch(value) or _WORDS_AND_NUMBERS.fullmatch(value):
        return False
    return _is_random(value, _MIN_PASSWORD_ENTROPY)


def _is_password_in_prose(value: str) -> bool:
    """Return whether a word of prose is a password: both cases, digits, and not a name."""
    has_lower = any(map(str.islower, value))
    has_upper = any(map(str.isupper, value))
    if not has_lower or not has_upper or _NAMES.fullmatch(value):
        return False
    return _is_random(value, _MIN_PASSWORD_ENTROPY)


def _is_token(value: str) -> bool:
    """Return whether the value behind `token` is a key: long enough, and not a hash."""
    if len(value) < _MIN_TOKEN_CHARACTERS or _HEX.fullmatch(value):
        return False
    return _is_key(value)


def _is_key(value: str) -> bool:
    """Return whether a value is a key and not the name of something."""
    if not _KEY_CHARACTERS.fullmatch(value) or _NAMES.fullmatch(value):
        return False
    digit_count = sum(map(str.isdigit, value))
    return digit_count >= 2 and _is_random(value, _MIN_KEY_ENTROPY)


def _is_random(value: str, min_entropy: float) -> bool:
    """Return whether a value has letters, digits and enough entropy, and is not a placeholder.

    `min_entropy` is in bits per character, by how often each character occurs in the value.
    """
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    if not has_digit or not has_letter or _PLACEHOLDER.search(value):
        return False

    shares = [count / len(value) for count in Counter(value).values()]
    entropy = -sum(share * math.log2(share) for share in shares)
    return entropy >= min_entropy


def _find_all(text: str, part: str) -> Iterator[int]:
    """Yield the offset of each occurrence of a part; occurrences do not overlap."""
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + len(part))
