"""Counts the same links with DuckDB, from scratch: in-links of every target, the most
linked, and their number. Reads DIRECTORY/edges.csv; needs the package duckdb."""
import resource
import sys
import time

import duckdb


def taken(since):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic() - since[0], usage.ru_utime + usage.ru_stime - since[1]


def now():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), usage.ru_utime + usage.ru_stime


database = duckdb.connect()
database.execute("PRAGMA threads=2")
begin = now()
path = sys.argv[1] + "/edges.csv"
database.execute(
    "CREATE TABLE edges AS SELECT * FROM read_csv(?, header=false, columns={'source': 'BIGINT', 'target': 'BIGINT'})",
    [path],
)
read = taken(begin)
begin = now()
links = database.execute("SELECT count(*) FROM edges").fetchone()[0]
database.execute("CREATE TABLE counts AS SELECT target, count(*) AS incount FROM edges GROUP BY target")
database.execute("SELECT * FROM counts ORDER BY incount DESC, target LIMIT 25").fetchall()
counted = taken(begin)
print(
    f"DuckDB, all counts from scratch, in memory, not durable: {links} links read in {read[0]:.1f} s ({read[1]:.1f} CPU-s), "
    f"counted in {counted[0]:.2f} s ({counted[1]:.2f} CPU-s): {links / (read[0] + counted[0]):.0f} links/s"
)
