"""report.py RESULTS: medians of what measure.py recorded, and ratios to the peers."""
import json
import statistics
import sys

runs = {}
for line in open(sys.argv[1]):
    run = json.loads(line)
    runs.setdefault(run["name"], []).append(run)


def median(name, field):
    return statistics.median(run[field] for run in runs[name])


PAGES = 15_834
print(f"{'':20} {'pages':>7} {'requests':>9} {'repeats':>8} {'CPU ms/page':>12} {'RSS MB':>7} {'seconds':>8}")
cost = {}
for name in runs:
    # A second run is answered with 304, which the log does not count as a page.
    cost[name] = 1_000 * median(name, "cpu") / PAGES
    row = [int(median(name, field)) for field in ("html", "req", "dup")]
    print(f"{name:20} {row[0]:>7} {row[1]:>9} {row[2]:>8} {cost[name]:>12.3f} {median(name, 'rss_mb'):>7.0f} {median(name, 'wall'):>8.1f}")
for name, peer, limit in [
    ("driftline", "spider", 0.9),
    ("driftline, bodies", "spider", None),
    ("driftline", "floor", None),
    ("driftline again", "floor", 2.0),
    ("driftline, hops", "driftline", 1.5),
    ("driftline", "driftline, no links", 2.0),
]:
    if name in cost and peer in cost:
        bar = f" (at most {limit})" if limit else ""
        print(f"{name} / {peer}: {cost[name] / cost[peer]:.2f}{bar}")
