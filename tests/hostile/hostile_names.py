"""A few hundred names that would lead out of a vault.

They climb, are absolute, encoded, of Windows, look-alikes, broken text or too long, or lead through
links. Some have the real path of the canary beside the vault.
"""

from __future__ import annotations

import itertools
from pathlib import Path

_CLIMBS = [
    "../", "../../", "../../../../../../../../", "./../", "a/../../", "a/b/../../../", "//../", "/../", "..//", ".//../",
    "notes/../../", "notes/./../../", ".../../", "a/.../../../", "\t../", " ../", "../ ../", "../\u200b/../", "..;/",
    "..%00/", "..\0/", "....//", "....\\/", "..\\", "..\\..\\", "a\\..\\..\\", "..\\/", "../\\", "\\..\\", "\\\\..\\",
]  # fmt: skip
_ENCODED = [
    "%2e%2e/", "%2e%2e%2f", "..%2f", "..%5c", "%2e./", ".%2e/", "%252e%252e%252f", "%c0%ae%c0%ae/", "%uff0e%uff0e/",
    "..%c0%af", "..%ef%bc%8f", "&#46;&#46;/", "\\u002e\\u002e/", "%2E%2E%5C", "%00../", "..%0d%0a/",
]  # fmt: skip
_LOOKALIKES = [
    "\uff0e\uff0e/", "\u2024\u2024/", "\u2025/", "..\u2215", "..\u2044", "..\uff0f", "..\uff3c", "..\u29f8", "..\ufe68",
    "\u2026/", ".\u200b./", "\u200b../", "..\u200d/", "\ufeff../", "\u202e../", ".\u0307./", "\u00ad../",
]  # fmt: skip
_TARGETS = [
    "canary.md",
    "canary",
    "vault-evil/canary.md",
    "outside/canary",
    "outside/deep/canary.md",
]
_DEVICES = [
    "CON", "con.md", "NUL", "nul.md", "PRN.txt", "AUX", "aux .md", "COM1", "com9.log", "LPT1.md", "COM\u00b9",
    "CONIN$", "CONOUT$", "a/NUL/b", "CLOCK$", "nul.tar.gz", "a/con",
]  # fmt: skip
_WINDOWS = [
    "C:", "C:canary.md", "C:/canary.md", "C:\\canary.md", "c:..\\canary", "\\\\?\\C:\\canary.md", "\\\\.\\C:\\canary",
    "\\\\?\\UNC\\host\\share\\canary", "\\\\.\\pipe\\canary", "\\\\host\\share\\canary.md", "//host/share/canary.md",
    "\\\\localhost\\c$\\canary", "a:stream", "n.md:hidden", "n::$DATA", "n.md::$DATA", "trailing.", "trailing ", "dots...",
    "dots./canary", "space /canary", "PROGRA~1", "what?", "star*", 'say "x"', "less<", "more>", "pipe|", "x" * 255,
]  # fmt: skip
_HIDDEN = [
    ".hidden", ".git/config", ".git/hooks/pre-commit", "a/.git/HEAD", ".obsidian/app", ".obsidian/app.json",
    ".simplemem/lock", ".simplemem/index.db", ".simplemem/config.toml", ".simplemem/history/log.jsonl",
    ".simplemem/journal/x", ".trash/canary", ".GIT/config", ".Simplemem/config.toml", "a/.simplemem/lock",
    ".simplemem-1-abc.tmp", "....", "...", ".", "..", "./", "../", ".md", "..md", "...md",
]  # fmt: skip
_EXPANDED = [
    "~", "~/canary", "~root/canary", "$HOME/canary", "${HOME}/canary", "%USERPROFILE%\\canary", "`id`", "$(id)", ";id",
    "| id", "&& id", "\nid\n", "-rf", "--help", "--", "-", "--vault=/", "@canary", "file:canary", "file:../canary",
    "{canary,x}", "*", "**/*.md", "[c]anary", "?anary.md",
]  # fmt: skip
_DRESSED = [
    "[[../canary]]", "[[../canary|x]]", "![[../canary]]", "[[link-out/canary]]", "memory://../canary",
    "memory:///../canary", "memory://%2e%2e/canary", "memory://%2e%2e%2fcanary", "[x](../canary.md)", "../canary#Part",
    "../canary^block", "../canary#^block", "../canary.md.md", "../canary.MD", "canary/../../canary",
]  # fmt: skip
_THROUGH_LINKS = [
    "link-out", "link-out/canary", "link-out/canary.md", "link-out/new", "link-out/deep/new", "link-out/../canary",
    "link-evil/canary", "link-evil/new", "link-file", "link-file.md", "link-file/x", "link-absolute/canary", "loop",
    "loop/x", "link-to-parent/canary", "link-to-parent/vault/n", "link-to-proc/self/environ", "dangling", "dangling/new",
    "pipe", "pipe.md", "folder", "folder.md", "hard",
]  # fmt: skip
_BROKEN = [
    "", " ", "\t", "\n", "\r", "\0", "a\0b", "canary.md\0.md", "../canary\0.md", "\x7f", "\x1b[31mred", "\x80", "\ud800",
    "a/\udcff", "\udcff/../canary", "\ufffe", "\ufdd0", "\u2028", "a\u2029b", "\u202edm.yranac", "\u200f", "\U000e0041",
    "e\u0301", "\u00e9", "CANARY", "Canary.MD", "n.MD", "N", "n.md", "n/../n", "./n", "n/", "/n", "//n", "n//n", "n/.",
    "\u1e9b\u0323", "\ufb01", "\u0130", "\u00df", "nul\0l",
]  # fmt: skip
_LONG = [
    "a" * 5000, "../" * 2000 + "canary", "a/" * 450 + "n", "a/" * 100 + "../" * 101 + "canary", "\u00e9" * 130,
    "\U0001f9ea" * 60, ("d" * 200 + "/") * 25 + "n", "/" * 300 + "n", "." * 300, " " * 300, "../" * 120,
]  # fmt: skip


def hostile_names(room: Path) -> list[str]:
    """Return all of them, for a vault at `room / "vault"`."""
    absolute = [
        f"{start}{room}/{target}"
        for start in ("", "/", "file://", "memory://")
        for target in _TARGETS
    ]
    system = [
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/dev/stdin",
        "/dev/full",
        "//etc/passwd",
    ]
    evil = [f"{room}/vault-evil/canary", f"{room}/vault/../canary", "../vault-evil/canary"]
    beside = [*evil, "../vault/../canary", "../vault/n"]
    climbing = [start + target for start, target in itertools.product(_CLIMBS, _TARGETS[:3])]
    encoded = [start + "canary.md" for start in (*_ENCODED, *_LOOKALIKES)]
    groups = (
        climbing,
        encoded,
        absolute,
        system,
        beside,
        _DEVICES,
        _WINDOWS,
        _HIDDEN,
        _EXPANDED,
        _DRESSED,
    )
    return list(dict.fromkeys(itertools.chain(*groups, _THROUGH_LINKS, _BROKEN, _LONG)))
