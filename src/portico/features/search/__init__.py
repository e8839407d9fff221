"""The search over titles and messages, and its index."""
