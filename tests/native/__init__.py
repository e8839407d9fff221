"""Tests of portico.features.native."""
