"""Pusher Channels."""
