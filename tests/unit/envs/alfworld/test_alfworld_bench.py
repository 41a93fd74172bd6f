from agentrl_envs.alfworld.bench import measure


def test_the_python_engine_is_measured_without_any_extra(kitchen):
    results = measure(0.05, [kitchen])
    assert results.keys() == {"python_steps_per_s", "python_reset_ms"}
    assert results["python_steps_per_s"] > 1000
