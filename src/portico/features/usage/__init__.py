"""Usage and cost by session, day, agent, model and person. Imports the host's interfaces only."""
