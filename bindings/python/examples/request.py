# Makes one request and prints the response: a GET, or a POST of JSON. A request that may be
# repeated is tried up to three times.
#     python request.py URL [JSON]
from __future__ import annotations

import asyncio
import json
import sys

import librealtime


async def main(url: str, body: str | None) -> None:
    async with librealtime.RESTClient() as client:
        if body is None:
            response = await client.get(url)
        else:
            response = await client.post(url, json=json.loads(body), idempotency_key=True)
        response.raise_for_status()
        print(f"{response.status_code} in {response.attempts} attempt(s)", file=sys.stderr)
        print(response.text)


if len(sys.argv) < 2:
    sys.exit("usage: request.py URL [JSON]")
try:
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
except (librealtime.RealtimeError, json.JSONDecodeError) as error:
    sys.exit(f"FAILED: {error}")
