"""Workflows before they run: those of a folder, recipes, the plan of a run, and drafts from a description.

May import the core, `jobs` and the commands of `files`."""
