"""Runs one file in the sandbox, with the default limits, and prints what came of it as a line of JSON.

    python -m agentrl_envs.zerotir.sandbox FILE.py [--mode ns|landlock]

The exit code is 0 whatever the code did, and 2 where there is no sandbox.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from agentrl_envs.zerotir.sandbox import Sandbox, SandboxDied, SandboxUnavailable


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads the arguments and runs the file."""
    parser = argparse.ArgumentParser(prog="python -m agentrl_envs.zerotir.sandbox", description=__doc__)
    parser.add_argument("file", type=Path, help="a Python file")
    parser.add_argument("--mode", choices=("auto", "ns", "landlock"), default="auto", help="tier; auto by default")
    given = parser.parse_args(arguments)
    try:
        code = given.file.read_text(encoding="utf-8")
        with Sandbox(given.mode) as sandbox:
            result = sandbox.run(code)
    except (OSError, UnicodeDecodeError, SandboxUnavailable, SandboxDied) as error:
        print(error, file=sys.stderr)
        return 2
    told = {"status": result.status, "stdout": result.stdout, "stderr": result.stderr}
    print(json.dumps({**told, "wall_ms": round(result.wall_ms, 3)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
