"""Mending, carried out: all of it as one change in the history, which one undo takes back, or nothing."""

from __future__ import annotations

from collections import Counter

from simplemem.index.sync import Progress
from simplemem.memory import Mended
from simplemem.store.doctor.plan import Mending
from simplemem.store.in_step import InStep
from simplemem.vault.vault import Change


def mend(step: InStep, mending: Mending, change: Change, progress: Progress | None) -> Mended:
    """Do what was planned. Conflict, and nothing is done, when one of the notes has changed since."""
    version, changed, warnings = "", [], list(mending.unmended)
    if mending.wishes:
        step.must_be_writable()
        with step.vault.lock():
            written = step.vault.carry_out(mending.wishes, change)
            version = written[0].version
            paths = {path for wish in mending.wishes for path in (wish.path, wish.target)}
            warnings += step.indexed(mending.wishes[0].path, lambda: step.look_at(paths))
            changed = [each.path for each in written]
            step.fill_soon()
    anew = mending.makes_index_anew
    if anew and (why_not := _too_much_to_send(step)):
        anew = False
        warnings.append(why_not)
    if anew:
        report = step.sync(progress, embed=True, rebuild=True, believe=False, begin=False)
        warnings += [report.trouble] if report.trouble else []
    return Mended(version, tuple(changed), anew, tuple(warnings))


def _too_much_to_send(step: InStep) -> str:
    """Why the index is not made anew unasked: an embedder elsewhere would have to be given too much."""
    if not step.embedding.is_remote:
        return ""
    wanted = step.healing(lambda: step.embedding.estimate(anew=True))
    if wanted.tokens <= step.settings.embed.max_tokens_unasked:
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
