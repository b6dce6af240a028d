"""Changes that agents propose, and that a person accepts or declines."""
