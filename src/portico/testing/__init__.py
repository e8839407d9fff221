"""Test doubles that are part of the product: develop agents and jobs offline, without an account or a bill.

The model server imports only the errors, so that it can run next to any host; the fixtures create real hosts.
"""
