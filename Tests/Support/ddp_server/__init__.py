"""A Meteor-like server (DDP) for tests, which does on demand what a client must survive.

with DDPServer() as server:
    server.control.collection("players")
    server.control.publication("allPlayers", cursors=[{"collection": "players"}])
    server.control.fault(point="sent", msg="ready", do="reset")

settings.py    versions, heartbeat, resumption, accounts, and the habits of older servers
programs.py    methods and publications that tests declare as JSON
faults.py      delays, drops and wrong messages at any step
control.py     all actions, for Python and as POST /control/ACTION, and the log of messages
accounts.py    users, logins and passwords

`python Tests/Support/ddp_server` runs it for programs in other languages.
"""

from ddp_server.server import DDPServer

__all__ = ["DDPServer"]
