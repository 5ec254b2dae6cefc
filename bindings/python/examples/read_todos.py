# Prints a list of todos on a Meteor server, and again after each change. Reconnects by itself.
#
#     read_todos.py URL LIST
import sys

from librealtime.sync import DDPClient

url, name = sys.argv[1:]
with DDPClient(url) as client:
    client.subscribe("todos", name)
    for todos in client.collection("todos").results(sort={"text": 1}):
        print("The list:", *todos, sep="\n", flush=True)
