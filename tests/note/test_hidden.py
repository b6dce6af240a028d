"""What looks like a secret is found, what only looks like one from afar is not; what a reader does not see is counted."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest

from simplemem.note.invisible import find_unseen
from simplemem.note.secrets import added_secrets, find_secrets

_LETTERS = string.ascii_letters + string.digits


def drawn(length: int, letters: str = _LETTERS) -> str:
    """Letters drawn by lot, the same in every run; no real key stands in this file."""
    lot = random.Random(f"{length} {letters}")
    return "".join(lot.choice(letters) for _ in range(length - 2)) + "a7"


_CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_HEX = "0123456789abcdef"
_PEM = (
    "-----BEGIN {0}PRIVATE KEY-----\n"
    + drawn(64)
    + "\n"
    + drawn(60)
    + "\n-----END {0}PRIVATE KEY-----\n"
)

ISSUED = {
    "AWS access key": [
        "AKIA" + drawn(16, _CAPITALS)[:-2] + "A7",
        "ASIA" + drawn(16, _CAPITALS)[:-2] + "B6",
    ],
    "Google key": ["AIza" + drawn(35), "GOCSPX-" + drawn(28)],
    "Azure storage key": ["AccountKey=" + drawn(86) + "=="],
    "GitHub token": [f"gh{kind}_{drawn(36)}" for kind in "pousr"] + ["github_pat_" + drawn(82)],
    "GitLab token": ["glpat-" + drawn(20)],
    "Slack token": ["xoxb-" + drawn(40), "xapp-1-" + drawn(40)],
    "webhook": ["hooks.slack.com/services/T0ABCDEF1/B0ABCDEF2/" + drawn(24)],
    "Stripe key": ["sk_live_" + drawn(24), "rk_test_" + drawn(24)],
    "OpenAI key": ["sk-" + drawn(48), "sk-proj-" + drawn(64)],
    "Anthropic key": ["sk-ant-api03-" + drawn(95)],
    "Hugging Face token": ["hf_" + drawn(34)],
    "npm token": ["npm_" + drawn(36)],
    "PyPI token": ["pypi-AgEIcHlwaS5vcmc" + drawn(80)],
    "API key": ["shpat_" + drawn(32, _HEX), "ntn_" + drawn(46)],
    "JSON web token": [f"eyJ{drawn(30)}.eyJ{drawn(60)}.{drawn(43)}"],
    "private key": [_PEM.format(kind) for kind in ("", "RSA ", "OPENSSH ", "ENCRYPTED ")],
}


@pytest.mark.parametrize(
    ("kind", "secret"), [(kind, each) for kind, several in ISSUED.items() for each in several]
)
def test_a_token_that_says_whose_it_is_is_found_wherever_it_stands(kind: str, secret: str) -> None:
    for text in (
        secret,
        f"A line.\n\nUse `{secret}` for it.\n",
        f'{{"key": "{secret}"}}',
        f"| key | {secret} |",
    ):
        (found,) = find_secrets(text)
        assert found.kind == kind
        assert len(found.shown.split("…")[0]) <= 4
        assert f"({found.end - found.start} characters)" in found.shown


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("password = Tr0ub4dor&3", "password", "Tr0ub4dor&3"),
        ("| Password: | Tr0ub4dor&3 |", "password", "Tr0ub4dor&3"),
        ("DB_PASSWORD='Tr0ub4dor&3'", "password", "Tr0ub4dor&3"),
        ("密码：Tr0ub4dor&3", "password", "Tr0ub4dor&3"),
        ("password:: Tr0ub4dor&3", "password", "Tr0ub4dor&3"),
        ("The guests' password is Tr0ub4dor&3.", "password", "Tr0ub4dor&3"),
        ("Sign in with the password `Fulmar!2026-gas`.", "password", "Fulmar!2026-gas"),
        ("Das Passwort „Fulmar2026gas“ gilt weiter.", "password", "Fulmar2026gas"),
        ("contraseña: Fulmar!2026-gas", "password", "Fulmar!2026-gas"),
        ("api_key: " + drawn(32, _HEX), "key", drawn(32, _HEX)),
        ("aws_secret_access_key = " + drawn(40), "key", drawn(40)),
        ("auth token: " + drawn(24), "token", drawn(24)),
        ("postgres://ada:s3cr-et@db.internal:5432/x", "password in an address", "s3cr-et"),
    ],
)
def test_a_password_or_key_is_found_after_the_word_for_it(text: str, kind: str, value: str) -> None:
    [found] = find_secrets(text)
    assert (found.kind, text[found.start : found.end]) == (kind, value)
    assert found.shown == f"… ({len(value)} characters)"


@pytest.mark.parametrize(
    "text",
    [
        "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "OPENAI_API_KEY=sk-your-key-here-1234567890abcdefghij", 'api_key = { env = "COHERE_API_KEY" }',
        "api_key: ${API_KEY_2}", "password: <your-password-1>", "password = os.environ['DB_PASSWORD_2']",
        "password: str = Field(min_length=8)", "Password: required, 8 to 64 characters.",
        "The password: see Bitwarden, folder shared2.", "The password is base64-encoded and then SHA256-Hashed.",
        "The password is stored in KeePassXC-2.7/Work", "Password for the router: see Bitwarden, Shared2",
        "Password for Flight2: required8", "He forgot the password.", "The password is in the safe.",
        "A password `config/auth-v2.prod` or 'must-have-8-characters' is a name.",
        "Das Passwort \"steht im Ordner 2026\".", "The password `sha256sum2` prints.", "A first pass: TestCase12 and the others; compass: N51E004NorthEast",
        "The bearer authentication-with-oauth2-and-pkce is explained there.",
        "standard::password::PasswordHash2Algorithm", "Passwort: [[notes/where2look]]",
        "token: 550e8400-e29b-41d4-a716-446655440000", "token = self.tokens.next_token_2",
        "token_count = 1234567890123456789012", "commit 5eb63bbbe01eeed093cb22bb8f5acdc3d0e1f2a3",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "password: 5f4dcc3b5aa765d61d8327deb882cf99", "postgres://postgres:postgres@localhost/db",
        "postgres://user:password@localhost/db", "postgres://ada:${PASSWORD}@db/x", "https://ada:s3cret9@example.com/",
        "See https://docs.rs/task-sk-1/latest/a?token=1", "risk-management-for-the-2026-season-and-later-years",
        "A key begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----.",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----", "Keys look like ghp_ and 36 letters.",
        "secret santa: 2026-12-24T18:00:00Z", "xghp_" + drawn(36),
        "![](data:image/png;base64," + drawn(4000, _LETTERS + "+/") + ")",
    ],
)  # fmt: skip
def test_what_is_made_up_or_no_secret_passes(text: str) -> None:
    assert find_secrets(text) == []


def test_no_secret_is_seen_in_the_notes_and_pages_of_this_project() -> None:
    root = Path(__file__).parents[2]
    pages = [*root.glob("vault-example/**/*.md"), *root.glob("docs/*.md"), *root.glob("*.md")]
    assert len(pages) > 30
    assert {page.name for page in pages if find_secrets(page.read_text("utf-8"))} == set()


def test_a_secret_has_its_line_whatever_the_line_ends() -> None:
    for newline in ("\n", "\r\n", "\r"):
        text = newline.join(["one", "two", "password: Tr0ub4dor&3", "", "hf_" + drawn(34), ""])
        assert [found.line for found in find_secrets(text)] == [3, 5]


def test_only_what_is_added_is_judged_and_the_better_known_kind_is_named() -> None:
    assert [found.kind for found in find_secrets("api_key = sk-ant-api03-" + drawn(95))] == [
        "Anthropic key"
    ]
    old, new = "hf_" + drawn(34), "npm_" + drawn(36)
    assert added_secrets(f"- {old}\n", f"# Keys\n\n- {old}\n- {old}\n") == []
    [found] = added_secrets(f"- {old}\n", f"- {new}\n- {old}\n")
    assert (found.kind, found.line) == ("npm token", 1)


@pytest.mark.parametrize(
    "again",
    ["ghp_", "password: ", "api_key=", "eyJ", "-----BEGIN PRIVATE KEY-----", "://a:b", "sk-a", "token:" + "a1" * 128],
)  # fmt: skip
def test_a_hostile_text_is_read_to_its_end(again: str) -> None:
    """Two of these took minutes while a search began anew at every character (the last line shows that it got there)."""
    hostile = again * (300_000 // len(again))
    found = find_secrets(f"{hostile}\nhf_{drawn(34)}\n")
    assert found[-1].kind == "Hugging Face token"


def kinds(text: str) -> dict[str, int]:
    return {said.split()[1].rstrip("s"): int(said.split()[0]) for said, _ in find_unseen(text)}


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        ("pass\u200bword", "character", 1),
        ("a\u200cb", "character", 1),
        ("a\u2060\u2061\u2062\u2063\u2064b", "character", 5),
        ("a \u3164\uffa0 b", "character", 2),
        ("a\xad\xad\xad\xadb", "character", 4),
        ("A\ufe00\ufe01\ufe02\ufe03", "character", 4),
        ("\U0001f600\U000e0100\U000e0151\U000e0162", "character", 3),
        ("left\u200eright", "character", 1),
        ("\u05d0 \u200e\u200f \u05d1", "character", 2),
        ("\u05d0 \u200f\u200e \u05d1", "character", 2),
        ("\u202egnp.exe", "character", 1),
        ("a \u2066b\u2069 c", "character", 2),
        ("hello\U000e0049\U000e0067\U000e006e", "character", 3),
        ("\x1b[31mred", "character", 1),
        ("a <!-- b --> c <!--", "comment", 2),
        ("a %%b%% c\n%%\nd\n%%\n", "comment", 2),
        ("`%% inline %%`", "comment", 1),
    ],
)
def test_what_is_not_seen_is_counted(text: str, kind: str, count: int) -> None:
    assert kinds(text) == {kind: count}


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffA note that begins with a byte order mark.",
        "A family \U0001f468\u200d\U0001f469\u200d\U0001f467 and a burning heart \u2764\ufe0f\u200d\U0001f525.",
        "A rainbow \U0001f3f3\ufe0f\u200d\U0001f308, a key 1\ufe0f\u20e3, a coder \U0001f469\U0001f3fd\u200d\U0001f4bb.",
        "England \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with its joiner
        "\u0915\u094d\u200d\u0937 \u0dc1\u0dca\u200d\u0dbb\u0dd3",  # Hindi and Sinhala
        "\u05e9\u05dc\u05d5\u05dd \u200fC++\u200e \u05e2\u05d5\u05dc\u05dd",  # Hebrew around a Latin word
        "\u8fbb\U000e0100 and \u845b\U000e0101",  # ideographs in their variants
        "Donau\xaddampf\xadschiff",
        "```mermaid\ngraph TD\n%% a comment of the diagram\n<!-- and of the page -->\n```\n",
        "\u4e2d\u6587\u7b14\u8bb0\u3000\u65e5\u672c\u8a9e",
    ],
)
def test_what_writing_needs_is_not_counted(text: str) -> None:
    assert kinds(text) == {}


def test_the_first_of_each_kind_has_its_line() -> None:
    assert find_unseen("a\nb\u200b\nc\u200b\n<!-- d -->\n", first_line=5) == [
        ("2 characters that readers do not see", 6),
        ("1 comment that readers do not see", 8),
    ]
