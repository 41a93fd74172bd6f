import torch

from agentrl.algorithms.reinforce_pp_ntf import ReinforcePPNTF, ReinforcePPNTFConfig
from tests.unit.algorithms.steps import by_token, filled, outcomes


def test_trajectories_with_a_negative_advantage_keep_their_least_probable_tokens() -> None:
    batch = outcomes([1.0, 0.4, 0.0], tokens=[2, 4, 2])  # mean 3.6 / 8: the last two are below it
    algorithm = ReinforcePPNTF(ReinforcePPNTFConfig(kl_estimator="none", tau=0.5))
    logprobs = filled(batch, [[-1.0, -2.0], [-3.0, -1.0, -4.0, -2.0], [-2.0, -1.0]])
    keep = algorithm.keep(batch, algorithm.credit(batch), logprobs)
    assert by_token(keep, batch) == [[True, True], [True, False, True, False], [True, False]]


def test_it_ranks_by_the_current_policy() -> None:
    assert ReinforcePPNTF(ReinforcePPNTFConfig()).requires == {"reference", "current_logprobs"}


def test_its_advantages_are_those_of_reinforce_pp() -> None:
    batch = outcomes([1.0, 0.0])
    algorithm = ReinforcePPNTF(ReinforcePPNTFConfig(kl_estimator="none"))
    assert torch.equal(algorithm.credit(batch)[batch.action_mask], torch.tensor([1.0, -1.0]).double() / (1 + 2e-8))
