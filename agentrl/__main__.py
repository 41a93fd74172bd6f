"""Lets `python -m agentrl` do what `agentrl` does."""

import sys

from agentrl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
