"""Tests of portico.native."""
