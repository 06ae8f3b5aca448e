"""Errors, random numbers, schedules, checks, and parts as pytrees."""
