"""What is measured, as commands that print figures. Nothing here asserts a duration."""
