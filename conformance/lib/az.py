"""The azure-cli in a suite: one process a command as in a script."""

import json
import os
import sys
import tempfile
import traceback
from datetime import datetime, timedelta, timezone

import suite
from suite import equal

# A configuration of its own: nothing of the user's login or defaults may take part.
CONFIGURATION = tempfile.TemporaryDirectory(prefix="tavola-az-")
for name in [name for name in os.environ if name.startswith("AZURE_")]:
    del os.environ[name]
os.environ["AZURE_CONFIG_DIR"] = CONFIGURATION.name
os.environ["AZURE_CORE_COLLECT_TELEMETRY"] = "false"
os.environ["AZURE_CORE_ONLY_SHOW_ERRORS"] = "true"
os.environ["AZURE_CORE_NO_COLOR"] = "true"

from azure.cli.core import get_default_cli

# What the CLI says, in these words alone, for AuthorizationPermissionMismatch and for AuthenticationFailed.
NOT_PERMITTED = "You do not have the required permissions"
NOT_AUTHENTICATED = "Authentication failure."
BY_CONNECTION_STRING = ("--connection-string", suite.CONNECTION_STRING)


class Finished:
    """What a command left behind."""

    def __init__(self, code, out, err):
        self.returncode, self.stdout, self.stderr = code, out, err


def run(*command, credentials=BY_CONNECTION_STRING):
    """Runs `az storage COMMAND` in a process of its own.

    The process is forked from this one, where the CLI is loaded already: loading it takes longer than any command.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            os._exit(invoke(*command, *credentials))
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return Finished(os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode())


def invoke(*command):
    """What the program `az` does; returns its exit code."""
    try:
        code = get_default_cli().invoke(["storage", *command, "--output", "json"])
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code or 0


def az(*command, **options):
    """Runs a command and returns its answer."""
    process = run(*command, **options)
    equal(process.returncode, 0, f"exit code of {' '.join(command)}: {process.stderr}")
    return json.loads(process.stdout) if process.stdout.strip() else None


def refused(code, *command, **options):
    """Runs a command and expects it to fail with this code in its message."""
    process = run(*command, **options)
    assert process.returncode != 0, f"not refused, expected {code}: {process.stdout}"
    assert code in process.stderr, f"expected {code}: {process.stderr}"


def in_an_hour():
    return f"{datetime.now(timezone.utc) + timedelta(hours=1):%Y-%m-%dT%H:%MZ}"
