"""Review: an inbox of what agents changed, which a person keeps, undoes or comments on."""
