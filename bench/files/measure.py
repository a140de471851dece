"""measure.py DIRECTORY LEVELS: what two crawls of a tree cost, in CPU and memory.

The tree has ten directories in each directory, LEVELS deep, and ten files in each of the
last. Ends with 1 when a count is not what the tree has, or when CPU is over the limit in a
release build's real size.
"""
import os, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from measuring import PROGRAM, finish, run_twice, verb

LIMIT_MS = 0.4
WAYS = 10


def make(root, levels):
    """Makes the tree; returns how many directories and files it has."""
    os.makedirs(root)
    if levels == 0:
        for number in range(WAYS):
            with open(f"{root}/{number}.txt", "w") as file:
                file.write(f"file {number} of {root[-8:]}, of the size of a short note\n")
        return 1, WAYS
    below = [make(f"{root}/{number}", levels - 1) for number in range(WAYS)]
    return 1 + sum(it[0] for it in below), sum(it[1] for it in below)


def main(place, levels):
    with tempfile.TemporaryDirectory(dir=place) as directory:
        tree, data = f"{directory}/tree", f"{directory}/data"
        directories, files = make(tree, levels)
        documents = directories + files
        verb(data, "init")
        verb(data, "connection", "create", "disk", "--kind", "repository", "--connector", "files")
        verb(data, "connection", "create", "away", "--kind", "output", "--connector", "null")
        verb(data, "job", "create", "tree", "--connection", "disk", "--pipeline", "away", f"roots={tree}")
        print(f"{directories:,} directories and {files:,} files, by {PROGRAM}")
        good = True
        for line, cpu_ms in run_twice(data, "tree", documents, f"; limit {LIMIT_MS}"):
            good = good and line["processed"] == documents and line["word"] == "done" and line["undelivered"] == 0
            good = good and (cpu_ms <= LIMIT_MS or levels < 4)
        finish(data, documents, good)


main(sys.argv[1], int(sys.argv[2]))
