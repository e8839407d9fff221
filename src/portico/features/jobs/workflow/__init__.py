"""The workflow file: `.portico/jobs/NAME.yaml` or `NAME.md`. It is read with the position of every value, checked, and
translated to the tree that the executor runs. Imports the tree (`entry`, `step`), never the executor."""
