"""Requests with retries."""
