"""Objects that deliver items into a queue: event sources and long polls."""
