"""What the benchmarks share that time the program itself: its verbs, and a job worked on alone.

CPU time is that of the one process that works, user and system, as the kernel counts it; the
verbs that define and start the job are not in it.
"""
import json, os, subprocess, sys, time

PROGRAM = os.environ["DRIFTLINE"]


def verb(data, *args):
    """Runs a verb on a data directory; returns what it prints."""
    done = subprocess.run([PROGRAM, *args, "--data", data], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args[:4]}: {done.stderr}")
    return done.stdout


def work(data, job):
    """Runs a job; returns its seconds and what the process has used."""
    verb(data, "job", "start", job)
    began = time.monotonic()
    process = subprocess.Popen([PROGRAM, "work", "--until-idle", "--data", data],
                               stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"work ended with {process.returncode}")
    return time.monotonic() - began, used


def run_twice(data, job, documents, limit=""):
    """Runs a job twice and prints what each run cost; yields the job's line and the CPU time of
    a document after each."""
    for name in ["first", "again"]:
        seconds, used = work(data, job)
        line = json.loads(verb(data, "job", "list", "--json"))[0]
        cpu_ms = 1000 * (used.ru_utime + used.ru_stime) / documents
        print(f"{name}: {line['processed']:,} processed in {seconds:.1f} s ({documents / seconds:,.0f} a second), "
              f"{cpu_ms:.3f} CPU-ms a document (user {used.ru_utime:.1f} s, system {used.ru_stime:.1f} s{limit}), "
              f"{used.ru_maxrss / 1024:.0f} MB")
        yield line, cpu_ms


def finish(data, documents, good):
    """Prints what is kept, checks it, and ends with 1 unless all was good."""
    size = sum(os.path.getsize(f"{at}/{name}") for at, _, names in os.walk(data) for name in names)
    print(f"{size / documents:,.0f} bytes kept for each document")
    verb(data, "verify")
    if not good:
        sys.exit("not as it should be")
