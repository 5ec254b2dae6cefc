# Gets a URL and prints the body of the response. Failed attempts are repeated.
import sys

from librealtime.sync import RESTClient

with RESTClient() as client:
    print(client.get(sys.argv[1]).raise_for_status().text)
