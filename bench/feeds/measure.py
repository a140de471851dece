"""measure.py DIRECTORY FEEDS: what two crawls of so many feeds cost, in CPU and memory.

Each feed announces ten articles; both are made by a server of this script's own, which
answers conditional requests with 304, in a process of its own. Ends with 1 when a count is not
what the server has.
"""
import asyncio, os, socket, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from measuring import PROGRAM, finish, run_twice, verb

ITEMS = 10
DATE = "Mon, 06 Sep 2021 16:45:00 GMT"


def answer(path, conditional):
    """What is at a path: a feed, an article, or nothing."""
    pieces = path.strip("/").removesuffix(".xml").split("/")
    if pieces[0] == "feed" and len(pieces) == 2:
        feed = pieces[1]
        items = "".join(
            f"<item><title>Title {item} of feed {feed}</title><link>/article/{feed}/{item}</link>"
            f"<pubDate>{DATE}</pubDate></item>" for item in range(ITEMS))
        kind, text = "application/rss+xml", f'<rss version="2.0"><channel>{items}</channel></rss>'
    elif pieces[0] == "article" and len(pieces) == 3:
        kind = "text/html; charset=utf-8"
        text = f"<title>{path}</title><p>Article {pieces[2]} of feed {pieces[1]} says this and that.</p>"
    else:
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    if conditional:
        return f'HTTP/1.1 304 Not Modified\r\nETag: "{path}"\r\n\r\n'.encode()
    return (f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nETag: \"{path}\"\r\n"
            f"Content-Length: {len(text)}\r\n\r\n{text}").encode()


class Conversation(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        *heads, self.rest = (self.rest + data).split(b"\r\n\r\n")
        for head in heads:
            path = head.split(b" ", 2)[1].decode()
            self.transport.write(answer(path, b"if-none-match:" in head.lower()))


def serve(listener):
    async def forever():
        server = await asyncio.get_running_loop().create_server(Conversation, sock=listener, backlog=200)
        await server.serve_forever()
    asyncio.run(forever())


def crawl(directory, port, feeds):
    data, documents, good = f"{directory}/data", feeds * (1 + ITEMS), True
    seeds = ", ".join(f'"http://127.0.0.1:{port}/feed/{feed}.xml"' for feed in range(feeds))
    with open(f"{directory}/jobs.toml", "w") as file:
        file.write(f'[connections.repository.news]\nconnector = "feed"\n'
                   f'[connections.output.away]\nconnector = "null"\n'
                   f'[jobs.news]\nconnection = "news"\nspec.allow_private = true\nspec.delay_ms = 0\n'
                   f'spec.robots = "none"\nspec.concurrency = 32\nspec.seeds = [{seeds}]\n'
                   f'[[jobs.news.pipeline]]\noutput = "away"\n')
    verb(data, "init")
    verb(data, "import", f"{directory}/jobs.toml")
    print(f"{feeds:,} feeds and {feeds * ITEMS:,} articles, by {PROGRAM}")
    for line, _ in run_twice(data, "news", documents):
        good = good and line["processed"] == documents and line["word"] == "done"
        good = good and line["failed"] == 0 and line["undelivered"] == 0
    finish(data, documents, good)


def main(place, feeds):
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)
    server = os.fork()
    if server == 0:
        serve(listener)
    try:
        with tempfile.TemporaryDirectory(dir=place) as directory:
            crawl(directory, listener.getsockname()[1], feeds)
    finally:
        os.kill(server, 15)


main(sys.argv[1], int(sys.argv[2]))
