"""From a question to ranked notes: query, rank, pack. Ranking is pure; what it needs comes through the index's door."""
