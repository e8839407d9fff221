"""What was used and what it cost, by session, day, agent, model and person. Imports the host's interfaces only."""
