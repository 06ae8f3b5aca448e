"""Faults at random moments, and files that are damaged at random; see campaign.py."""
