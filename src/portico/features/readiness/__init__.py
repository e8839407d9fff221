"""Which agents are ready: their descriptions, checks that start them, the default agent, and their logins."""
