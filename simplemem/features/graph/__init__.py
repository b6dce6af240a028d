"""The knowledge graph: entities and relations that are notes."""
