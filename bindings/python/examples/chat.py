# A chat over a presence channel: prints each member that comes or goes, and what the others say;
# sends them each line of its input.
#
#     chat.py KEY CHANNEL HOST PORT NAME
import sys

from librealtime.sync import Pusher

key, channel, host, port, name = sys.argv[1:]
with Pusher(
    key,
    host=host,
    port=int(port),
    use_tls=False,
    auth_endpoint=f"http://{host}:{port}/pusher/auth",
    auth_params={"user_id": name},
    on_member_added=lambda _, member: print(member.id, "comes", flush=True),
    on_member_removed=lambda _, member: print(member.id, "goes", flush=True),
) as pusher:
    chat = pusher.subscribe(channel)
    chat.bind("client-message", lambda event: print(f"{event.user_id}: {event.raw}", flush=True))
    for member in chat.members:
        print(member.id, "is here", flush=True)
    for line in sys.stdin:
        chat.trigger("client-message", line.rstrip("\n"))
