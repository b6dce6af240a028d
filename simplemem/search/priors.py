"""What speaks for a note beside its own words: that it is of the days the question names. It finds no note; it orders those
that were found (docs/search.md has the figures)."""

NOTES = 40  # so many of the best are ordered
DATED = 0.15  # beside 1 of all else; a plateau from 0.05 to 0.2
