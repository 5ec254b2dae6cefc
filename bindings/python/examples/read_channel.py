# Prints the events of a Pusher channel; reconnects by itself.
import sys

from librealtime.sync import Pusher

key, channel, host, port = sys.argv[1:]
with Pusher(key, host=host, port=int(port), use_tls=False) as pusher:
    for event in pusher.subscribe(channel):
        print(f"{event.event}: {event.raw}", flush=True)
