"""Test doubles that are part of the product: develop agents and jobs offline, without an account or a bill.

Imports errors only, so that it can stand beside any host.
"""
