"""The confinement of processes that a test starts itself."""

from portico.sandbox.policy import Unconfined

FREE = Unconfined("a test")
