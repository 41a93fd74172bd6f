"""One piece of model-written code: run it, and show what went wrong without a frame of ours."""

import linecache
import os
import sys
import traceback
from types import TracebackType
from typing import Any

_FRAMES = 8


def run_snippet(code: str, names: dict[str, Any], *, name: str) -> int:
    """Runs code in the namespace `names` and gives an exit status.

    Args:
        code: the source.
        names: its globals, which it changes.
        name: its file name in tracebacks.
    """
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    try:
        exec(compile(code, name, "exec"), names)
    except SystemExit as error:
        return _exit_status(error)
    except BaseException as error:  # a snippet may raise anything; what it is belongs on its stderr
        _show(error, name)
        return 1
    return 0


def _exit_status(error: SystemExit) -> int:
    if isinstance(error.code, int):
        return error.code & 0xFF
    if error.code is None:
        return 0
    print(error.code, file=sys.stderr)
    return 1


def _show(error: BaseException, name: str) -> None:
    """Writes a traceback of the last frames, from the snippet's own on, that came out of it."""
    try:
        shown: TracebackType | None = error.__traceback__
        while shown is not None and shown.tb_frame.f_code.co_filename != name:
            shown = shown.tb_next
        sys.stderr.write("".join(traceback.format_exception(type(error), error, shown, limit=-_FRAMES, chain=False)))
    except BaseException:  # out of memory or stack, or a __str__ that raises: the type is all there is to tell
        os.write(2, f"{type(error).__name__}\n".encode())
