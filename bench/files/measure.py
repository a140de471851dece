"""measure.py DIRECTORY LEVELS: what two crawls of a tree cost, in CPU and memory.

The tree has ten directories in each directory, LEVELS deep, and ten files in each of the
last. CPU time is that of the one process that works, user and system, as the kernel counts
it; the verbs that define and start the job are not in it. Ends with 1 when a count is not
what the tree has, or when CPU is over the limit in a release build's real size.
"""
import json, os, subprocess, sys, tempfile, time

LIMIT_MS = 0.4
PROGRAM = os.environ["DRIFTLINE"]
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


def verb(data, *args):
    done = subprocess.run([PROGRAM, *args, "--data", data], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr}")
    return done.stdout


def work(data):
    """Runs the job; returns its seconds and what the process has used."""
    verb(data, "job", "start", "tree")
    began = time.monotonic()
    process = subprocess.Popen([PROGRAM, "work", "--until-idle", "--data", data],
                               stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"work ended with {process.returncode}")
    return time.monotonic() - began, used


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
        for name in ["first", "again"]:
            seconds, used = work(data)
            line = json.loads(verb(data, "job", "list", "--json"))[0]
            cpu_ms = 1000 * (used.ru_utime + used.ru_stime) / documents
            print(f"{name}: {line['processed']:,} processed in {seconds:.1f} s ({documents / seconds:,.0f} a second), "
                  f"{cpu_ms:.3f} CPU-ms a document (user {used.ru_utime:.1f} s, system {used.ru_stime:.1f} s; "
                  f"limit {LIMIT_MS}), {used.ru_maxrss / 1024:.0f} MB")
            good = good and line["processed"] == documents and line["word"] == "done" and line["undelivered"] == 0
            good = good and (cpu_ms <= LIMIT_MS or levels < 4)
        size = sum(os.path.getsize(f"{at}/{name}") for at, _, names in os.walk(data) for name in names)
        print(f"{size / documents:,.0f} bytes kept for each document")
        verb(data, "verify")
        if not good:
            sys.exit("not as it should be")


main(sys.argv[1], int(sys.argv[2]))
