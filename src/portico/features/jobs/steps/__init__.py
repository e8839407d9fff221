"""One file for each kind of step without an agent. Each has `run(step, values)`, which returns the outcome; the caller
records it, retries it and applies the timeout."""
