"""Tests of portico.pairing."""
