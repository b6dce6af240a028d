"""Documents as notes with their originals, and what statements and documents answer together."""
