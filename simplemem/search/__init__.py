"""From a question to ranked notes: query, rank.

Ranking is pure; what it needs comes through the index's door.
"""
