"""Pilot runs: they find what a specification leaves open."""
