# Prints the messages of a path, each once and in order, over whichever transport works.
import sys

from librealtime.sync import Spreadbot

with Spreadbot(sys.argv[1]) as bot:
    bot.establish_connection(sys.argv[2])
    for message in bot:
        print(f"{message.id}: {message.text}", flush=True)
