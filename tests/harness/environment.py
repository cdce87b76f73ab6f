"""Virtual environments beside the tests' own, for Python programs whose pins and those of tests/requirements.txt exclude each other.

    folder = environment(".venv-clients", "tests/requirements-clients.txt", "MARTLET_CLIENTS_VENV")

Each is made once from its list of requirements, anew where that changes, and by one process at a time. `python -m harness.environment`
(in tests/) makes that of the clients of S3 (`make clients`).
"""

import fcntl
import hashlib
import os
import venv
from pathlib import Path

from harness.places import REPOSITORY
from harness.process import run


def environment(name, requirements, variable, *, anew=lambda folder: None):
    """The folder: what the environment variable names, else `name` in the repository. `anew` is called with it after an installation."""
    folder = Path(os.environ.get(variable, REPOSITORY / name)).absolute()
    requirements = REPOSITORY / requirements
    folder.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    ready = folder / "ready"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text() != wanted:
            venv.create(folder, with_pip=True, symlinks=True)
            run([folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements], timeout=1200)
            anew(folder)
            ready.write_text(wanted)
    return folder


def clients():
    """The folder of programs of the clients of S3: `aws`, and a `python` with minio, s3fs, pyarrow and polars."""
    return environment(".venv-clients", "tests/requirements-clients.txt", "MARTLET_CLIENTS_VENV") / "bin"


if __name__ == "__main__":
    clients()
