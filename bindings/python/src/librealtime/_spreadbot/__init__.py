"""Spreadbot connections, and requests with their tokens."""
