"""Values that steps of jobs need and nobody may read: set by the owner of the host, passed to the steps that name them,
and masked in everything that leaves a step. May import `home`, `host` and the common words."""
