"""Starts a Python suite in a virtual environment made from the lock file beside it.

    python3 ../../../in_venv.py SCRIPT

The environment lives in `TAVOLA_CACHE` under the hash of the lock file, so that a changed lock makes a new one. When it
cannot be made, the client is not at hand: the reason is printed and the exit code is 77.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

CLIENT_MISSING = 77


def main():
    suite = Path.cwd()
    # A suite that needs the same as another links to its lock file, and then has its environment as well.
    lock = (suite / "requirements.txt").resolve()
    python = environment(f"{lock.parent.parent.name}-{lock.parent.name}", lock)
    libraries = str(Path(__file__).resolve().parent / "lib")
    os.execve(python, [str(python), sys.argv[1]], {**os.environ, "PYTHONPATH": libraries})


def environment(name, lock):
    """Returns the interpreter of the environment for this lock file, which is made when it is not there."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    folder = Path(os.environ["TAVOLA_CACHE"]) / f"venv-{name}-{version}-{digest}"
    python, complete = folder / "bin" / "python", folder / "complete"
    if complete.exists():
        return python
    venv.create(folder, clear=True, with_pip=True)
    install = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", lock],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    if install.returncode != 0:
        print(install.stdout)
        reason = install.stdout.strip().splitlines()[-1:] or ["pip gave no reason"]
        print(f"{name}: the client could not be installed: {reason[0]}")
        sys.exit(CLIENT_MISSING)
    complete.touch()
    return python


if __name__ == "__main__":
    main()
