"""Changes of the settings file through the host."""
