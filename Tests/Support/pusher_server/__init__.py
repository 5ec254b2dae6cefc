"""A Pusher server (protocol 7) for tests, which does on demand what a client must survive.

with PusherServer() as server:
    server.control.fault(point="sent", event="pusher_internal:*", do="reset")

settings.py    what the app allows, and the dialects of pusher, soketi, reverb, sockudo, pusher-fake
faults.py      delays, drops, close codes and wrong messages at any step
auth.py        the authorization endpoints, and how they fail
push.py        the service of push notifications, below /push
control.py     all actions, for Python and as POST /control/ACTION, and the log

`python Tests/Support/pusher_server` runs it for programs in other languages.
"""

from pusher_server.server import PusherServer

__all__ = ["PusherServer"]
