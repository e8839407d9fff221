"""One folder or file per client protocol. Doors translate and authorise, without rules. No door imports another."""
