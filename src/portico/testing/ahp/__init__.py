"""The reducers of the Agent Host Protocol, as a client has them: pure functions over plain JSON, to test a host."""
