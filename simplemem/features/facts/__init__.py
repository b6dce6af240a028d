"""Statements as notes: what is known, of whom, since when and how sure; and what a new one does to those that are there."""
