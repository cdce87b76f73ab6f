"""Load as a program: `load_apart.py AUTH_URL [--once]`, for a network that this process is not in.

For every input line it prints how many writes were acknowledged, and the last failure; at the end of its input it stops, reads everything back and prints what was wrong. With --once every name is written once.
"""

import json
import sys

from harness.load import Load


def main(auth_url, *once):
    # What is written once stays, and is all read at the end: less of it lasts for a longer time.
    with Load(auth_url, threads=4, rewrites=not once, pause=0.2 if once else 0) as load:
        for _ in sys.stdin:
            print(json.dumps({"acknowledged": load.acknowledged, "last_failure": load.failed[-1:]}), flush=True)
    load.patience, failed = 90, list(load.failed)
    read = load.read_all()
    print(json.dumps({"acknowledged": load.acknowledged, "failed": failed, "wrong": load.wrong, "read": read}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
