"""Budgets: limits on the cost of a turn, session, job, person or day, and the question when one is exhausted."""
