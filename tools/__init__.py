"""Scripts that write files of this repository."""
