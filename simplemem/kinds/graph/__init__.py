"""The knowledge graph: entities and relations that are notes. It stands above the store and uses it like anyone else."""
