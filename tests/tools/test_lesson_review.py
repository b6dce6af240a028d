"""The profile `self-improving`: offered contradictions are judged, and the notes keep it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_service import ChatService

Ask = Callable[..., Any]

OLD = "Idle sessions of the admin console end after 15 minutes."
NEW = "Idle sessions of the admin console end after 60 minutes, people complained."
NEAR = "Sessions of the admin console are kept in the database, so a restart ends none."


@pytest.fixture
def ask(asking_with: Callable[..., Ask]) -> Ask:
    return asking_with("self-improving", embed={"provider": "none"})


def save(ask: Ask, content: str, kind: str = "decision", **more: Any) -> str:
    return ask("save_knowledge", type=kind, content=content, **more).data["id"]


def note_bytes(vault: Path) -> dict[Path, bytes]:
    """Return the content of every note of a vault, by its path."""
    return {path: path.read_bytes() for path in vault.rglob("*.md")}


def all_text(vault: Path) -> str:
    """Return the text of all lessons of a vault."""
    return "".join(path.read_text() for path in (vault / "knowledge").rglob("*.md"))


def offered(ask: Ask) -> list[set[str]]:
    """Return the ids of the pairs that are offered."""
    offers = ask("detect_contradictions").data["offered"]
    return [{offer["one"]["id"], offer["other"]["id"]} for offer in offers]


def test_an_agent_sees_what_it_may_replace_and_confirms_it_in_its_next_call(ask: Ask) -> None:
    old = save(ask, OLD)
    saved = ask("save_knowledge", type="decision", content=NEW)
    [offer] = saved.data["may_contradict"]
    assert (offer["id"], offer["reason"]) == (old, "different numbers for the same thing")
    assert f'This may contradict: "{OLD}"' in saved.text and old in saved.text

    new = saved.data["id"]
    verdict = {"one": old, "other": new, "verdict": "contradict", "keep": new}
    answer = ask("review_contradictions", verdicts=[verdict])
    assert answer.data["reviewed"][0]["superseded"] == old
    [gone] = ask("get_superseded_history").data["superseded"]
    assert gone["id"] == old and gone["winner"]["id"] == new
    assert offered(ask) == []


def test_a_lesson_that_contradicts_nothing_is_saved_as_before(ask: Ask) -> None:
    save(ask, OLD)
    assert "may_contradict" not in ask("save_knowledge", type="insight", content=NEAR).data


def test_a_rejected_pair_is_not_offered_again_and_the_note_says_so(
    ask: Ask, asking_with: Callable[..., Ask], vault: Path
) -> None:
    old, new = save(ask, OLD), save(ask, NEW)
    assert offered(ask) == [{old, new}]
    ask("review_contradictions", verdicts=[{"one": old, "other": new, "verdict": "compatible"}])
    assert offered(ask) == []
    [note] = [path for path in (vault / "knowledge").rglob("*.md") if NEW in path.read_text()]
    assert "- compatible_with [[knowledge/decision/" in note.read_text()

    again = asking_with("self-improving", embed={"provider": "none"})
    assert offered(again) == []
    assert ask("detect_contradictions").data["contradictions"] == []


def test_a_confirmed_pair_is_a_contradiction_until_one_is_kept(ask: Ask) -> None:
    old, new = save(ask, OLD), save(ask, NEW, verified=True)
    ask("review_contradictions", verdicts=[{"one": new, "other": old, "verdict": "contradict"}])
    [found] = ask("detect_contradictions").data["contradictions"]
    assert found["rule"] == "confirmed" and found["winner"] == new
    ask("auto_resolve_contradictions", apply=True)
    assert [row["id"] for row in ask("get_superseded_history").data["superseded"]] == [old]
    assert ask("detect_contradictions").data["contradictions"] == []


def test_a_pair_that_is_only_offered_is_never_resolved(ask: Ask) -> None:
    save(ask, OLD)
    save(ask, NEW, verified=True)
    assert ask("auto_resolve_contradictions", apply=True).data["resolved"] == []
    assert ask("get_superseded_history").data["superseded"] == []


def test_the_last_verdict_counts_and_replaces_the_others(ask: Ask, vault: Path) -> None:
    old, new = save(ask, OLD), save(ask, NEW)
    for verdict in ("contradict", "compatible", "contradict"):
        ask("review_contradictions", verdicts=[{"one": old, "other": new, "verdict": verdict}])
    notes = all_text(vault)
    assert notes.count("- contradicts [[") == 1 and "compatible_with" not in notes


def test_of_opposite_verdicts_in_one_call_only_the_last_supersedes(ask: Ask, vault: Path) -> None:
    old, new = save(ask, OLD), save(ask, NEW)
    keep_new = {"one": old, "other": new, "verdict": "contradict", "keep": new}
    ask("review_contradictions", verdicts=[keep_new, keep_new | {"keep": old}])

    [superseded] = ask("get_superseded_history").data["superseded"]
    assert superseded["id"] == new and superseded["winner"]["id"] == old
    assert all_text(vault).count("- supersedes [[") == 1


def test_a_verdict_that_is_repeated_in_one_call_is_written_once(ask: Ask, vault: Path) -> None:
    old, new = save(ask, OLD, confidence=0.9), save(ask, NEW)
    keep_new = {"one": old, "other": new, "verdict": "contradict", "keep": new}
    ask("review_contradictions", verdicts=[keep_new, keep_new])

    assert all_text(vault).count("- supersedes [[") == 1
    [superseded] = ask("get_superseded_history").data["superseded"]
    assert superseded["id"] == old and superseded["confidence"] == 0.6


@pytest.mark.parametrize("is_one_call", [True, False])
def test_a_pair_that_is_later_compatible_has_no_superseded_lesson(
    ask: Ask, vault: Path, is_one_call: bool
) -> None:
    old, new = save(ask, OLD), save(ask, NEW)
    keep_new = {"one": old, "other": new, "verdict": "contradict", "keep": new}
    compatible = {"one": old, "other": new, "verdict": "compatible"}
    calls = [[keep_new, compatible]] if is_one_call else [[keep_new], [compatible]]
    for verdicts in calls:
        ask("review_contradictions", verdicts=verdicts)

    assert ask("get_superseded_history").data["superseded"] == []
    assert "- supersedes [[" not in all_text(vault)
    assert all_text(vault).count("- compatible_with [[") == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"other": "ffffffff"}, "not_found"),
        ({"keep": "ffffffff"}, "not_found"),
        ({"other": "one"}, "invalid"),
        ({"verdict": "perhaps"}, "invalid"),
    ],
)
def test_a_wrong_verdict_is_refused_and_nothing_is_written(
    ask: Ask, vault: Path, change: dict[str, str], code: str
) -> None:
    old, new = save(ask, OLD), save(ask, NEW)
    before = note_bytes(vault)
    wrong = {"one": old, "other": new, "verdict": "contradict"} | change
    wrong["other"] = old if wrong["other"] == "one" else wrong["other"]
    right = {"one": old, "other": new, "verdict": "compatible"}
    assert ask("review_contradictions", verdicts=[right, wrong]).code == code
    assert note_bytes(vault) == before


def test_verdicts_are_one_change_that_can_be_undone(ask: Ask, vault: Path) -> None:
    old, new = save(ask, OLD), save(ask, NEW)
    before = note_bytes(vault)
    verdict = {"one": old, "other": new, "verdict": "contradict", "keep": new}
    done = ask("review_contradictions", verdicts=[verdict])
    ask.store.undo(done.data["version"])
    assert note_bytes(vault) == before


# -- a model


def judging(verdict: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a model that says the same of every pair, and quotes both lessons."""

    def judge(question: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {
                "id": pair["id"],
                "verdict": verdict,
                "one_quote": pair["one"]["text"],
                "other_quote": pair["other"]["text"],
            }
            for pair in question["pairs"]
        ]
        return {"pairs": rows}

    return judge


def with_model(asking_with: Callable[..., Ask], service: ChatService) -> Ask:
    llm = {"provider": "openai", "model": "m", "url": service.url, "timeout_seconds": 1}
    return asking_with("self-improving", embed={"provider": "none"}, llm=llm)


def test_without_a_model_and_without_verdicts_the_answer_says_what_to_do(ask: Ask) -> None:
    refused = ask("review_contradictions")
    assert refused.code == "unavailable" and "verdicts" in refused.text


def test_a_model_confirms_what_is_offered_and_supersedes_nothing(
    asking_with: Callable[..., Ask], vault: Path
) -> None:
    with ChatService(judging("contradict")) as service:
        ask = with_model(asking_with, service)
        old, new = save(ask, OLD), save(ask, NEW)
        answer = ask("review_contradictions")
        assert answer.data["asked"] == 1 and answer.data["method"] == "llm:m"
        [found] = ask("detect_contradictions").data["contradictions"]
        assert {found["one"]["id"], found["other"]["id"]} == {old, new}
        assert ask("get_superseded_history").data["superseded"] == []
        notes = all_text(vault)
        assert 'by="llm:m"' in notes or "by=llm:m" in notes


def test_a_model_is_asked_about_near_pairs_once_and_only_rejections_of_offers_are_written(
    asking_with: Callable[..., Ask], vault: Path
) -> None:
    with ChatService(judging("compatible")) as service:
        ask = with_model(asking_with, service)
        save(ask, OLD)
        save(ask, NEAR)
        before = note_bytes(vault)
        assert ask("review_contradictions").data["asked"] == 1
        assert note_bytes(vault) == before
        assert ask("review_contradictions").data["asked"] == 0
        assert len(service.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "The two lessons contradict each other.",
        {"pairs": "all"},
        {"pairs": [{"id": "77", "verdict": "contradict", "one_quote": OLD, "other_quote": NEW}]},
        {"pairs": [{"id": "1", "verdict": "contradict", "one_quote": "x", "other_quote": "y"}]},
        {"pairs": [{"id": "1", "verdict": "unsure", "one_quote": "", "other_quote": ""}]},
        {"pairs": [7, {"id": "1", "verdict": ["contradict"]}]},
    ],
)
def test_an_answer_that_cannot_be_used_changes_nothing_and_the_pair_stays_offered(
    asking_with: Callable[..., Ask], vault: Path, answer: Any
) -> None:
    with ChatService(lambda _: answer) as service:
        ask = with_model(asking_with, service)
        save(ask, OLD)
        save(ask, NEW)
        before = note_bytes(vault)
        ask("review_contradictions")
        assert note_bytes(vault) == before
        assert len(offered(ask)) == 1


def test_an_unreachable_model_is_named_in_the_answer_and_the_pair_stays_offered(
    asking_with: Callable[..., Ask], vault: Path
) -> None:
    with ChatService(judging("contradict")) as service:
        ask = with_model(asking_with, service)
    save(ask, OLD)
    save(ask, NEW)
    before = note_bytes(vault)
    answer = ask("review_contradictions")
    assert not answer.failed
    assert answer.data["reviewed"] == [] and answer.data["version"] == ""
    assert "cannot be reached" in answer.data["degraded"]
    assert answer.data["degraded"] in answer.text
    assert note_bytes(vault) == before
    assert len(offered(ask)) == 1


def test_a_private_lesson_is_not_sent_to_the_model(
    asking_with: Callable[..., Ask], vault: Path
) -> None:
    with ChatService(judging("contradict")) as service:
        ask = with_model(asking_with, service)
        save(ask, OLD)
        save(ask, NEW)
        [note] = [path for path in (vault / "knowledge").rglob("*.md") if NEW in path.read_text()]
        note.write_text(note.read_text().replace("---\n", "---\nprivate: true\n", 1))
        ask.in_step()
        assert ask("review_contradictions").data["asked"] == 0
        assert service.requests == [] and len(offered(ask)) == 1


# -- verifying, chains, searching together


def test_an_entry_is_verified_with_how_it_was_tested(ask: Ask) -> None:
    entry = save(ask, OLD, context="admin console")
    done = ask("verify_knowledge", id=entry[:8], note="waited 16 minutes")
    assert done.data["changed"] == ["context", "verified"]
    [found] = ask("search_knowledge", query="idle sessions").data["results"]
    assert found["verified"] and found["context"].startswith("admin console\n\nVerified on 20")
    assert found["context"].endswith(": waited 16 minutes")

    ask("verify_knowledge", id=entry, verified=False, note="still open after an hour")
    [found] = ask("search_knowledge", query="idle sessions").data["results"]
    assert not found["verified"] and "Did not hold on 20" in found["context"]
    assert ask("verify_knowledge", id="ffffffff").code == "not_found"


def test_a_chain_of_cause_and_fix_is_saved_and_followed_in_one_call(ask: Ask) -> None:
    cause = save(ask, "The queue client keeps acknowledged messages", "insight")
    fix = save(ask, "Upgrade the queue client to 4.2", "solution")
    leak = save(ask, "The resizer leaks memory", "error", causedBy=[cause], fixedBy=[fix])
    kill = save(ask, "The resizer is killed every six hours", "error", causedBy=[leak])
    chain = ask("trace_knowledge", id=kill)
    assert [(step["role"], step["id"], step["of"]) for step in chain.data["chain"]] == [
        ("cause", cause, leak),
        ("cause", leak, kill),
        ("fix", fix, leak),
        ("entry", kill, None),
    ]
    assert chain.text.index(cause) < chain.text.index(fix)
    assert ask("save_knowledge", type="error", content="x", causedBy=["ffffffff"]).failed
    assert ask("get_stats").data["total"] == 4


def test_entries_and_entities_are_found_together(ask: Ask) -> None:
    entry = save(ask, "The image resizer is killed by large uploads", "error")
    resizer = {
        "name": "Resizer",
        "entityType": "component",
        "observations": ["The image resizer makes thumbnails of uploads"],
    }
    ask("create_entities", entities=[resizer])
    found = ask("search_all_knowledge", query="image resizer uploads").data
    kinds = {row["kind"]: row for row in found["results"]}
    assert kinds["entry"]["id"] == entry and kinds["entity"]["name"] == "Resizer"
    scores = [row["score"] for row in found["results"]]
    assert scores == sorted(scores, reverse=True) and not found["degraded"]
    nothing = ask("search_all_knowledge", query="Which passport renews the expedition?").data
    assert nothing["results"] == [] or nothing["degraded"].startswith("Nothing found")
