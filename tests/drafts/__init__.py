"""Workflows before they run."""
