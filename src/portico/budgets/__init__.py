"""Budgets: what a turn, a session, a job, a person or a day may cost, and who is asked when it is spent."""
