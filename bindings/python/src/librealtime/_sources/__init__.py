"""Whatever delivers items into a queue: event sources and long polls."""
