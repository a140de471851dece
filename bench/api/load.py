"""Many callers at once ask `driftline serve` to search while it crawls: how fast is either?

Usage: load.py URL JUDGED SECONDS CALLERS TOKEN...
Asks the questions of JUDGED in turn, each caller over a connection of its own, for SECONDS, and
prints answers a second by status, and how long callers waited. The tokens are shared out.
"""

import asyncio
import collections
import sys
import time
import urllib.parse


async def caller(host, port, paths, token, until, seen):
    reader, writer = await asyncio.open_connection(host, port)
    while time.monotonic() < until:
        path = next(paths)
        began = time.monotonic()
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.split("content-length:", 1)[1].split("\r\n", 1)[0])
        await reader.readexactly(length)
        seen.append((head.split(" ", 2)[1], time.monotonic() - began))
        if "connection: close" in head:
            reader, writer = await asyncio.open_connection(host, port)
    writer.close()


def questions(judged):
    with open(judged, encoding="utf-8") as file:
        words = sorted({line.split("\t")[0] for line in file if line.strip() and not line.startswith("#")})
    paths = ["/api/v1/search?q=" + urllib.parse.quote(it) for it in words]
    while True:
        yield from paths


async def main(url, judged, seconds, callers, *tokens):
    where = urllib.parse.urlsplit(url)
    paths, seen = questions(judged), []
    until = time.monotonic() + float(seconds)
    count = int(callers)
    await asyncio.gather(
        *(caller(where.hostname, where.port, paths, tokens[n % len(tokens)], until, seen) for n in range(count))
    )
    waits = sorted(wait for _, wait in seen)
    by_status = collections.Counter(status for status, _ in seen)
    rates = ", ".join(f"{status}: {n / float(seconds):.0f} a second" for status, n in sorted(by_status.items()))
    print(f"{count} callers: {rates}; median {waits[len(waits) // 2] * 1000:.0f} ms, p99 {waits[len(waits) * 99 // 100] * 1000:.0f} ms")


asyncio.run(main(*sys.argv[1:]))
