"""How long callers of the API wait for the first byte of an answer, route by route."""
import http.client
import sys
import threading
import time
import urllib.parse

ROUNDS = 100
# A token may call 500 times a second.
PAUSE_S = 0.003


def main():
    url, judged, site, *tokens = sys.argv[1:]
    host = urllib.parse.urlparse(url).netloc
    with open(judged, encoding="utf-8") as lines:
        questions = [line.split("\t")[0] for line in lines if line.strip() and not line.startswith("#")]
    questions = list(dict.fromkeys(questions))
    page = urllib.parse.quote(site + "rust/std/index.html", safe="")
    routes = {
        "search": ["/api/v1/search?" + urllib.parse.urlencode({"q": it}) for it in questions],
        "links": [f"/api/v1/links?url={page}"],
        "page": [f"/api/v1/page?url={page}"],
        "top": ["/api/v1/top?limit=100"],
        "domains": ["/api/v1/domains"],
        "status": ["/api/v1/status"],
        "jobs": ["/api/v1/jobs"],
        "documents": ["/api/v1/documents?limit=100"],
        "why": [f"/api/v1/why?url={page}"],
        "hosts": ["/api/v1/hosts"],
        "history": ["/api/v1/reports/history?connection=web&limit=100"],
        "openapi": ["/api/v1/openapi.json"],
    }
    measure(host, tokens, routes, 1)
    measure(host, tokens, routes, len(tokens))


def measure(host, tokens, routes, callers):
    every = []
    lock = threading.Lock()

    def call(paths, times, token):
        connection = http.client.HTTPConnection(host, timeout=60)
        headers = {"Authorization": "Bearer " + token, "Accept-Encoding": "gzip"}
        for at in range(ROUNDS):
            time.sleep(PAUSE_S)
            began = time.perf_counter()
            connection.request("GET", paths[at % len(paths)], headers=headers)
            answer = connection.getresponse()
            took = 1000 * (time.perf_counter() - began)
            answer.read()
            if answer.status not in (200, 404):
                sys.exit(f"{paths[at % len(paths)]}: {answer.status}")
            with lock:
                times.append(took)

    print(f"{callers} at once, first byte in ms      median     p95     p99")
    for name, paths in routes.items():
        times = []
        call(paths, [], tokens[0])  # what is hot
        # A token may only call so often, so each caller has its own.
        threads = [threading.Thread(target=call, args=(paths, times, token)) for token in tokens[:callers]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        every += times
        show(name, times)
    show("all", every)


def show(name, times):
    times = sorted(times)
    at = [times[min(len(times) - 1, len(times) * percent // 100)] for percent in (50, 95, 99)]
    print(f"    {name:30} {at[0]:8.1f} {at[1]:7.1f} {at[2]:7.1f}")


main()
