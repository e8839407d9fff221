"""Test doubles that are part of the product: develop agents and jobs offline, without an account or a bill.

The model server imports errors only, so that it can stand beside any host; the fixtures build real hosts.
"""
