"""What one person sees of a host, how much they may have, and when it is deleted; people and their rights.

Who a caller is (tokens) is in `server/identity.py`; who may use which session is in `kernel/ownership.py`. May import
the kernel, `home`, `settings` and `terminals`.
"""
