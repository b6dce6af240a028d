"""Conversations as notes: blocks of turns by subject, facts that were told, and the person who told them."""
