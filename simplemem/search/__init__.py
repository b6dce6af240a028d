"""From a question to ranked notes: query, rank, excerpt. Ranking is pure; what it needs comes through the index's door."""
