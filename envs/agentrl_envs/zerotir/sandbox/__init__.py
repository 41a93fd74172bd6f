r"""A sandbox for model-written Python: isolated, limited, killable, and refusing to run where nothing isolates.

    with Sandbox() as sandbox:
        sandbox.run("print(1 + 1)").stdout  # "2\n"

The trainer starts a launcher with an empty environment; the launcher enters namespaces, or Landlock where those are
denied, and becomes a zygote with numpy and sympy loaded; each call gets a fork of the zygote that has dropped every
right. Not covered: bugs of the kernel, timing, and under Landlock that `stat` tells whether a path of the host exists.
"""

from agentrl_envs.zerotir.sandbox.local import LocalSession, Sandbox
from agentrl_envs.zerotir.sandbox.results import (
    CodeRunner,
    Limits,
    Result,
    SandboxDied,
    SandboxUnavailable,
    Session,
)

__all__ = ["CodeRunner", "Limits", "LocalSession", "Result", "Sandbox", "SandboxDied", "SandboxUnavailable", "Session"]
