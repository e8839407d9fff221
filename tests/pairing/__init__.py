"""Tests of portico.features.pairing."""
