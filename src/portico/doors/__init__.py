"""One folder or file per client protocol: translate and authorise, decide nothing. No door imports another."""
