from concurrent.futures import ThreadPoolExecutor

import pytest

from agentrl_envs.zerotir.codecs import ToolCall
from agentrl_envs.zerotir.sandbox import Limits, Sandbox
from agentrl_envs.zerotir.sandbox.fusion import FusionSandbox
from agentrl_envs.zerotir.tool import PythonTool, ToolKnobs, open_sandbox


def test_environments_share_a_sandbox_also_when_they_ask_at_once(any_sandbox: Sandbox) -> None:
    del any_sandbox
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: open_sandbox("auto"), range(8)))
    assert len(set(map(id, opened))) == 1


def test_an_address_names_a_server() -> None:
    assert isinstance(open_sandbox("http://localhost:1"), FusionSandbox)


@pytest.mark.parametrize(("wall_s", "cpu_s"), [(5.0, 5), (0.2, 1), (20.5, 21)])
def test_the_time_of_a_call_bounds_its_cpu_time(wall_s: float, cpu_s: int) -> None:
    limits = ToolKnobs(wall_s=wall_s).limits
    assert (limits.wall_s, limits.cpu_s) == (wall_s, cpu_s)
    assert limits.session_cpu_s == 60
    assert ToolKnobs(wall_s=40).limits.session_cpu_s == 80
    assert limits.memory_mib == Limits().memory_mib


def test_a_malformed_call_counts_and_runs_nothing() -> None:
    tool = PythonTool(ToolKnobs(max_calls=2, sandbox="http://localhost:1"))
    assert tool.call(ToolCall(problem="not valid JSON")) == "not valid JSON"
    assert (tool.num_calls, tool.calls_left) == (1, 1)
    tool.restart()
    assert (tool.num_calls, tool.calls_left) == (0, 2)
