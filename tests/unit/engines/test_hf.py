import numpy as np
import pytest
import torch

from agentrl.engines.hf import _draw, _uniforms


def test_uniform_numbers_depend_on_seed_and_place_alone() -> None:
    assert _uniforms([7, 8], [3, 4])[0] == _uniforms([9, 7], [0, 3])[1]
    assert len({float(x) for drawn in range(50) for x in _uniforms(range(50), [drawn] * 50)}) == 2500


def test_uniform_numbers_of_neighbors_are_spread_evenly_and_unrelated() -> None:
    numbers = np.stack([_uniforms(range(2**61, 2**61 + 4000), [drawn] * 4000) for drawn in range(3)])
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    counts = np.stack([np.histogram(row, bins=20, range=(0, 1))[0] for row in numbers])
    assert np.abs(counts - 200).max() < 5 * (200 * 0.95) ** 0.5
    correlations = np.corrcoef([*numbers, numbers[0, ::-1]]) - np.eye(4)
    assert np.abs(correlations).max() < 5 / 4000**0.5


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 0), (0.19, 0), (0.21, 1), (0.69, 1), (0.71, 3), (1 - 2**-53, 3)])
def test_a_token_is_drawn_where_the_cumulative_probability_passes_the_number(uniform: float, token: int) -> None:
    logits = torch.tensor([[0.2, 0.5, 0.0, 0.3]]).log()
    ids, logprobs = _draw(logits, torch.ones(1, 1), torch.tensor([uniform], dtype=torch.float64))
    assert ids.tolist() == [token]
    assert logprobs.exp().tolist() == pytest.approx([[0.2, 0.5, 0.0, 0.3][token]])


def test_temperature_flattens_before_drawing() -> None:
    logits = torch.tensor([[0.2, 0.8]]).log()
    _, logprobs = _draw(logits, torch.full((1, 1), 2.0), torch.zeros(1, dtype=torch.float64))
    assert logprobs.exp().tolist() == pytest.approx([0.2**0.5 / (0.2**0.5 + 0.8**0.5)])
