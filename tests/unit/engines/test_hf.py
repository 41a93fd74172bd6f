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


PROBABILITIES = [0.15, 0.4, 0.05, 0.3, 0.1]


def drawn(uniforms: list[float], top_p: float) -> tuple[list[int], list[float]]:
    rows = len(uniforms)
    ids, logprobs = _draw(
        torch.tensor([PROBABILITIES] * rows).log(),
        torch.ones(rows, 1),
        torch.tensor(uniforms, dtype=torch.float64),
        torch.full((rows, 1), top_p, dtype=torch.float64),
    )
    return ids.tolist(), logprobs.exp().tolist()


def test_a_nucleus_is_the_fewest_tokens_that_reach_the_probability() -> None:
    # 0.4 + 0.3 < 0.75 <= 0.4 + 0.3 + 0.15: ids 0, 1 and 3 stay, out of 0.85, in the order of their ids
    edges = [0.0, 0.15 / 0.85 - 1e-6, 0.15 / 0.85 + 1e-6, 0.55 / 0.85 - 1e-6, 0.55 / 0.85 + 1e-6, 1 - 2**-53]
    ids, probabilities = drawn(edges, 0.75)
    assert ids == [0, 0, 1, 1, 3, 3]
    assert probabilities == pytest.approx([PROBABILITIES[token] / 0.85 for token in ids])


def test_a_nucleus_of_little_is_the_most_probable_token_and_of_all_changes_nothing() -> None:
    assert drawn([0.0, 0.999], 1e-9) == ([1, 1], pytest.approx([1.0, 1.0]))
    grid = [number / 40 for number in range(40)]
    logits = torch.tensor([PROBABILITIES] * 40).log()
    plain = _draw(logits, torch.ones(40, 1), torch.tensor(grid, dtype=torch.float64))
    assert drawn(grid, 1.0) == (plain[0].tolist(), plain[1].exp().tolist())


def test_rows_have_nuclei_of_their_own_and_the_most_probable_token_needs_none() -> None:
    logits = torch.tensor([PROBABILITIES] * 3).log()
    temperature = torch.tensor([[1.0], [1.0], [0.0]])
    top_p = torch.tensor([[0.5], [1.0], [0.5]], dtype=torch.float64)
    ids, logprobs = _draw(logits, temperature, torch.zeros(3, dtype=torch.float64), top_p)
    assert ids.tolist() == [1, 0, 1]
    assert logprobs.exp().tolist() == pytest.approx([0.4 / 0.7, 0.15, 0.4])


def test_the_share_of_each_token_of_a_nucleus_is_its_probability() -> None:
    number = 20_000
    ids, _ = drawn(_uniforms(range(number), [0] * number).tolist(), 0.75)
    counts = np.bincount(ids, minlength=5)
    assert counts[[2, 4]].sum() == 0
    for token in (0, 1, 3):
        share = PROBABILITIES[token] / 0.85
        assert abs(counts[token] - number * share) < 5 * (number * share * (1 - share)) ** 0.5
