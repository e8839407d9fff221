"""The fixtures are part of the product: extension authors use the same ones."""

import os

from hypothesis import settings

pytest_plugins = ["portico.testing.fixtures", "tests.postgres", "tests.temporal"]

# The same examples every time, so that a red run means a change; HYPOTHESIS_PROFILE=search looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
