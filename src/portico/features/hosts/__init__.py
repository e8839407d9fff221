"""The hosts that share a log: handing over the sessions of one, and giving up one that is gone."""
