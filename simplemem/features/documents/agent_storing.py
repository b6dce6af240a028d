"""Store what an agent states beside a text: facts, and what it says for the user's profile.

`agent_facts.py` says which facts these are.
"""

from __future__ import annotations

from simplemem.features.agent_statements import AgentStatements
from simplemem.features.documents.agent_facts import facts_beside, traits_of
from simplemem.features.documents.document import Document
from simplemem.features.facts.adding import AddResult
from simplemem.features.facts.service import FactService
from simplemem.features.scope_profile import add_traits
from simplemem.models import AuthorArgs


def check_replaced_facts(service: FactService, scope: str, stated: AgentStatements) -> None:
    """Raise NotFound or Unreadable, as `FactService.find` does, for a fact to be replaced.

    Call it before anything is stored.
    """
    for fact in stated.facts:
        for id_ in fact.replaced_ids:
            service.find(id_, scope)


def add_agent_facts(
    service: FactService, document: Document, stated: AgentStatements, by: AuthorArgs
) -> AddResult:
    """Store the facts that the agent states beside a document. Return what became of them.

    Call it before the document is stored, so that the same sentences, which rules or a model
    extract from it later, are known already.
    """
    if not stated.facts and not stated.user_name:
        return AddResult()
    current = service.facts(document.scope)
    facts = facts_beside(document.text, stated, current)
    return service.add(document.scope, facts, **by)


def add_agent_traits(
    service: FactService, scope: str, stated: AgentStatements, name: str, by: AuthorArgs
) -> None:
    """Write what the agent states about the user into the profile of a scope.

    `name` is that of the note with the text that states it. Nothing is written without one.
    """
    if stated.has_traits and name:
        link = service.link_target(f"{name}.md")
        add_traits(service, scope, traits_of(stated), link, **by)
