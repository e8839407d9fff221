"""Sessions, turns, the queue, approvals and questions: the only room where rules live.

Its public surface (`Host`, `Session`, `Turn`, the agent interface) is what doors, jobs, agents and tests use.
Imports log, events, errors and limits; never a door, an agent or a job.
"""
