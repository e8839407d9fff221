"""Changes of sessions in their folders: captures around turns, worktrees, commit and discard. May import the core and
`workspace`."""
