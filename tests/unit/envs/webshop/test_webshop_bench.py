import agentrl
from agentrl.env import text_env
from agentrl_envs.webshop.bench import measure_env
from agentrl_envs.webshop.env import WebShop


def test_the_shop_is_measured():
    env = text_env(agentrl.make("agentrl/WebShop-v0", num_products=100))
    assert isinstance(env, WebShop)
    found = measure_env(env, 0.05)
    assert found.keys() == {"startup_s", "num_products", "search_ms", "step_ms", "env_kb"}
    assert found["num_products"] == 100
    assert 0 < found["env_kb"] < 20
    assert all(0 < value < 100 for name, value in found.items() if name.endswith("_ms"))
