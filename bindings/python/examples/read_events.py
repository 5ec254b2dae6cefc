# Prints the events of a stream; reconnects by itself.
import sys

from librealtime.sync import EventSource

with EventSource(sys.argv[1]) as source:
    for event in source:
        print(f"{event.event}: {event.data}", flush=True)
