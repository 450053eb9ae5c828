"""Running a plan: what runs next, and what came of it."""
