"""Connections: what each client receives, and how it reconnects. The top layer: it may import all of this door."""
