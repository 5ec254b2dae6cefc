"""permessage-deflate with the `websockets` library: all four parameters of RFC 7692 §7.1."""

import pytest
from harness import Build, Probe, also_under_valgrind, expect
from servers import Servers
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory

OFFERS: dict[str, dict[str, object]] = {
    "default": {},
    "server_no_context_takeover": {"server_no_context_takeover": True},
    "client_no_context_takeover": {"client_no_context_takeover": True},
    "server_max_window_bits": {"server_max_window_bits": 9},
    "client_max_window_bits": {"client_max_window_bits": 9},
    "all four": {
        "server_no_context_takeover": True,
        "client_no_context_takeover": True,
        "server_max_window_bits": 10,
        "client_max_window_bits": 10,
    },
}


@pytest.mark.parametrize("parameters", OFFERS.values(), ids=OFFERS.keys())
@pytest.mark.parametrize("side", ("client", "server"))
@also_under_valgrind
def test_deflates(
    build: Build, servers: Servers, side: str, parameters: dict[str, object], grind: bool
) -> None:
    """Messages of many sizes go both ways, whichever side asks for the parameters."""
    # Above the largest message, so that no drained event comes.
    options: dict[str, object] = {"send_high_water_bytes": 1_000_000}
    if side == "server":
        factory = ServerPerMessageDeflateFactory(**parameters)  # type: ignore[arg-type]
        url = servers.echo(compression=None, extensions=[factory])
    else:
        url = servers.echo()
        options |= parameters
    with Probe(build, url, grind, compression_min_bytes=0, **options) as probe:
        agreed = probe.expect(r"open \[\] \[(.*)\]")[1]
        expect(agreed.startswith("permessage-deflate"), f"the server agreed to {agreed!r}")
        for name, value in parameters.items():
            text = name if value is True else f"{name}={value}"
            expect(text in agreed, f"{text} is not in {agreed!r}")
        for seed, length in enumerate((0, 1, 125, 126, 5000, 65535, 65536, 300_000)):
            for kind in ("text", "binary"):
                checksum = probe.ask(f"{kind} {length} {seed}", r"sent (\w+)")[1]
                probe.expect(f"{kind} {length} {checksum}")
        probe.close()
