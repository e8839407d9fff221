"""Files, the jail, git, watches and terminals of a working directory. Imports errors and limits only."""
