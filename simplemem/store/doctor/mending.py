"""Mending, carried out: all of it as one change in the history, which one undo takes back, or nothing."""

from __future__ import annotations

from collections import Counter

from simplemem.index.reconcile import Progress
from simplemem.memory import Mended
from simplemem.store.core import Core
from simplemem.store.doctor.plan import Mending
from simplemem.vault.vault import Change


def mend(core: Core, mending: Mending, change: Change, progress: Progress | None) -> Mended:
    """Do what was planned. Conflict, and nothing is done, when one of the notes has changed since."""
    version, changed, warnings = "", [], list(mending.unmended)
    if mending.wishes:
        core.must_be_writable()
        with core.vault.lock():
            written = core.vault.carry_out(mending.wishes, change)
            version = written[0].version
            paths = {path for wish in mending.wishes for path in (wish.path, wish.target)}
            warnings += core.indexed(mending.wishes[0].path, lambda: core.look_at(paths))
            changed = [each.path for each in written]
            core.fill_soon()
    anew = mending.makes_index_anew
    if anew and (why_not := _too_much_to_send(core)):
        anew = False
        warnings.append(why_not)
    if anew:
        report = core.sync(progress, embed=True, rebuild=True, believe=False, begin=False)
        warnings += [report.trouble] if report.trouble else []
    return Mended(version, tuple(changed), anew, tuple(warnings))


def _too_much_to_send(core: Core) -> str:
    """Why the index is not made anew unasked: an embedder elsewhere would have to be given too much."""
    if not core.embedding.is_remote:
        return ""
    wanted = core.healing(lambda: core.embedding.estimate(anew=True))
    if wanted.tokens <= core.settings.embed.max_tokens_unasked:
        return ""
    return (
        f"the index was left as it is: making it anew would send {wanted.tokens:,} tokens to {wanted.embedder}; "
        "`simplemem index --rebuild` does it, and asks before"
    )


def reason_of(mending: Mending) -> str:
    """What the history says of why: the checks, and how much of each was mended."""
    left = set(mending.left)
    counted = Counter(finding.check for finding in mending.findings if finding not in left)
    return "mended: " + ", ".join(f"{check} {number}" for check, number in counted.items())
