"""What a text holds that should not be read, or its reader does not see: secrets, unseen characters, comments. Pure.
What is made up, a hash, a UUID or prose is no secret: a warning that is often wrong is not read. No value is shown."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from simplemem.note.words import counted


class Secret(NamedTuple):
    """Something that looks secret: what it is, and where. `shown` may be printed, the text between the offsets not."""

    kind: str
    line: int
    start: int
    end: int
    shown: str


# Tokens that say by their first letters whose they are: the kind, those letters, what follows them.
_ISSUED = tuple(
    (kind, letters, re.compile(rf"({rest})(?![A-Za-z0-9])", re.ASCII))
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
        (
            "API key",
            "sk-or-v1- gsk_ pplx- xai- ntn_ lin_api_ glsa_ dop_v1_ shpat_",
            r"[0-9A-Za-z_]{32,128}+",
        ),
        ("age secret key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,70}+"),
        ("JSON web token", "eyJ", r"[\w-]{10,4000}+\.eyJ[\w-]{10,8000}+\.[\w-]{16,2000}+"),
    )
    for letters in several.split()
)
_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_LINE = re.compile(r"-----|[0-9A-Za-z+/]{40}")
# `scheme://user:password@host`
_IN_ADDRESS = re.compile(
    r"://([^\s/:@\"'<>`]{0,100}+):([^\s/@\"'<>`]{3,200}+)@(?![\w.]*\bexample\b)", re.IGNORECASE
)

# Words that a password or key stands after. `token` is weaker: it stands in much prose and code.
_WORDS = {
    "password": ("password", "passwd", "passphrase", "pwd", "passwort", "kennwort", "mot de passe", "contraseña",
                 "senha", "wachtwoord", "hasło", "пароль", "密码", "密碼", "パスワード", "비밀번호"),
    "key": ("apikey", "api_key", "api-key", "api key", "access_key", "secret_key", "access_token", "auth_token",
            "client_secret", "secret"),
    "token": ("token",),
}  # fmt: skip
_TEXT = r"[ \t]{0,8}[\"'`*_]{0,3}([^\s\"'`|,;，。]{8,256}+)"
_VALUE = re.compile(
    r"(?i)(?:[_-]?(?:key|token|prod|dev|live|test|value)){0,2}"
    rf"[\"'`*_]{{0,3}}[ \t]{{0,8}}(?:::(?=[ \t])|[:=：](?!:)|\|)[ \t]{{0,8}}[\"'`*_|]{{0,3}}{_TEXT}"
)
_IN_PROSE = re.compile(
    rf"[*_]{{0,3}}[ \t]{{1,3}}(?:is|was|ist|war|lautet|est|es)[ \t]{{0,3}}[:：]?[*_]{{0,3}}{_TEXT}",
    re.IGNORECASE,
)
_MADE_UP = re.compile(
    r"(?i)x{4}|\*{3}|\.{3}|…|[<>]|\$[{(]|\{\{|example|placeholder|change.?me|your[-_. ]|redacted|dummy|sample"
    r"|insert|01234567|12345678|abcdefg"
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

_Found = Iterator[
    tuple[int, int, str, int]
]  # start, end, kind, and how many of its first letters are no secret


def find_secrets(text: str) -> list[Secret]:
    """What looks secret in a text, in the order in which it stands there."""
    found: dict[
        int, tuple[int, str, int]
    ] = {}  # by where it ends, so that the better known of two is kept
    for start, end, kind, public in (*_issued(text), *_after_words(text)):
        found.setdefault(end, (start, kind, public))
    secrets: list[Secret] = []
    line, at, covered = 1, 0, 0
    for end, (start, kind, public) in sorted(
        found.items(), key=lambda item: (item[1][0], -item[0])
    ):
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
    there = (
        {before[secret.start : secret.end] for secret in find_secrets(before)} if found else set()
    )
    return [secret for secret in found if after[secret.start : secret.end] not in there]


def _issued(text: str) -> _Found:
    """Keys that say by their form what they are."""
    for begin in _PEM_BEGIN.finditer(text):
        line = _PEM_LINE.search(text, begin.end(), begin.end() + 400)
        if line is not None and line[0] != "-----":
            end = text.find("-----", line.end(), line.end() + 20_000)
            yield begin.start(), end if end >= 0 else line.end(), "private key", 4
    for kind, letters, pattern in _ISSUED:
        for at, after in _places(text, letters) if letters in text else ():
            is_begun = at and (text[at - 1].isalnum() or text[at - 1] in "_-")
            if not is_begun and (match := pattern.match(text, after)) and _is_drawn(match[1], 3.0):
                yield at, match.end(), kind, after - at
    for match in _IN_ADDRESS.finditer(text):
        user, password = match.groups()
        if password != user and not _MADE_UP.search(password) and not _NO_VALUE.match(password):
            yield match.start(2), match.end(2), "password in an address", 0


def _after_words(text: str) -> _Found:
    """What stands after `password:` or `api_key =`, where it is a value and not a word about it."""
    lowered = text.replace("İ", "i").lower()  # the one letter whose small form is longer
    for kind, word in (
        (kind, word) for kind, words in _WORDS.items() for word in words if word in lowered
    ):
        for _, after in _places(lowered, word):
            match = _VALUE.match(text, after)
            in_prose = None if match or kind != "password" else _IN_PROSE.match(text, after)
            if found := match or in_prose:
                value = found[1].rstrip(")]}>.*_:")
                if _is_value(value, "prose" if in_prose else kind):
                    yield found.start(1), found.start(1) + len(value), kind, 0


def _is_value(value: str, kind: str) -> bool:
    if len(value) < 8 or _NO_VALUE.match(value):
        return False
    if kind == "password":
        return _HEX.fullmatch(value) is None and _is_drawn(value, 2.5)
    if (
        kind == "prose"
    ):  # it must be plain to see: small and capital letters and figures, and no name of a thing
        mixed = any(map(str.islower, value)) and any(map(str.isupper, value))
        return mixed and _NAMES.fullmatch(value) is None and _is_drawn(value, 2.5)
    too_weak = kind == "token" and (len(value) < 20 or _HEX.fullmatch(value))
    is_key = _KEY_LETTERS.fullmatch(value) and not _NAMES.fullmatch(value) and not too_weak
    return bool(is_key) and sum(map(str.isdigit, value)) >= 2 and _is_drawn(value, 3.0)


def _is_drawn(value: str, bits: float) -> bool:
    """Whether a value was drawn by lot: letters and figures, nothing made up, of so much entropy a character."""
    if (
        not any(map(str.isdigit, value))
        or not any(map(str.isalpha, value))
        or _MADE_UP.search(value)
    ):
        return False
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values()) >= bits


def _places(text: str, letters: str) -> Iterator[tuple[int, int]]:
    """Where these begin and end in a text."""
    at = text.find(letters)
    while at >= 0:
        yield at, at + len(letters)
        at = text.find(letters, at + len(letters))


# A person reads a note as it is drawn, a model as it is spelled: what only one sees may be meant to mislead the other.
_SUSPECT = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
_FROM_THE_RIGHT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_PICTURE = "[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff\ufe0f]"
_NEEDED = re.compile(
    "\\A\ufeff"
    # Letters of Arabic and its kin and of the scripts of India and South-East Asia are joined or parted.
    "|(?<=[\u0600-\u08ff\u0900-\u0dff\u0e00-\u109f\u1780-\u18af\ua800-\ua8ff\ufb50-\ufdff\ufe70-\ufefc])[\u200c\u200d]"
    f"|(?<={_PICTURE})\ufe0f?\u200d(?={_PICTURE})"
    "|(?<=\\S)[\ufe00-\ufe0f]"
    "|(?<=[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,6}\U000e007f"  # a flag of letters
    "|(?<=[^\\W\\d_])[\xad\u034f](?=[^\\W\\d_]|[\r\n]|$)"
)
_FENCED = re.compile(
    r"(?ms)^ {0,3}(?:> ?)*+(`{3,}+|~{3,}+).*?(?:^ {0,3}(?:> ?)*+\1[`~]*+[ \t]*+$|\Z)"
)
_COMMENT = re.compile(r"<!--|%%(?:[^%]|%(?!%))*+(?:%%)?")


def find_unseen(text: str, first_line: int = 1) -> list[tuple[str, int]]:
    """What a reader of this text does not see: `3 characters that readers do not see`, and the line of the first."""
    ignored = "\u200e\u200f\u061c" if _FROM_THE_RIGHT.search(text) else ""
    characters = [
        run
        for run in _SUSPECT.finditer(text)
        if not ((needed := _NEEDED.match(text, run.start())) and needed.end() == run.end())
        and run[0] not in ignored
    ]
    shown = text
    if "<!--" in text or "%%" in text:
        shown = _FENCED.sub(lambda fenced: "\n" * fenced[0].count("\n"), text)
    comments = [*_COMMENT.finditer(shown)]
    found = (
        (sum(len(run[0]) for run in characters), "character", characters),
        (len(comments), "comment", comments),
    )
    return [
        (
            f"{counted(number, kind)} that readers do not see",
            first_line + at[0].string.count("\n", 0, at[0].start()),
        )
        for number, kind, at in found
        if at
    ]
