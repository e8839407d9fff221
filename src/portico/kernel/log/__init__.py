"""The numbered log: durable before visible. Imports events, errors and limits, nothing else of Portico."""
