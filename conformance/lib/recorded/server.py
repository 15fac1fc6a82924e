"""A server of its own, in memory: the shared one has one account, and a recorded test begins with an empty one."""

import base64
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 10


class Server:
    """Serves as many accounts as are asked for, each with a key of its own, until the end of a `with` block."""

    def __init__(self, binary, service, count):
        self.service = service
        self.accounts = [(f"recorded{number:04}", base64.b64encode(b"key of recorded %04d" % number).decode()) for number in range(count)]
        self.folder = tempfile.TemporaryDirectory(prefix="tavola-recorded-")
        folder = Path(self.folder.name)
        accounts, self.log_path = folder / "accounts", folder / "log"
        accounts.touch(mode=0o600)
        accounts.write_text("\n".join(f"{name}:{key}" for name, key in self.accounts))
        ports = [word for name in ("blob", "queue", "table") for word in (f"--{name}Port", "0")]
        command = [binary, "--inMemoryPersistence", "--accounts-file", accounts, *ports]
        # TAVOLA_KEY and the like mean something else to the server than to a suite.
        foreign = ("TAVOLA_", "AZURITE_", "RUST_LOG")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def address(self):
        """Host and port, once it listens."""
        line = rf"{self.service.title()} service is successfully listening at http://(.*):(\d+)"
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            if found := re.search(line, self.log()):
                return found[1], int(found[2])
            time.sleep(0.01)
        raise RuntimeError(f"the server does not serve {self.service}s:\n{self.log()}")

    def log(self):
        return self.log_path.read_text(errors="replace")

    def errors(self):
        return [line for line in self.log().splitlines() if re.match(r"\S+Z\s+ERROR\b", line) or "panicked at" in line]
