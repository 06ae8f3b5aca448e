"""Documentation, and what makes it."""
