"""Conversations as notes: topics with their turns, facts, and the profile of the user."""
