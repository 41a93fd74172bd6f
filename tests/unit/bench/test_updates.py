import pytest
import torch

from agentrl.bench.updates import ROW_TOKENS, compare_ragged, ragged_batch
from agentrl.bench.workloads import random_model


def test_the_rows_of_the_workload_are_ragged_and_a_quarter_of_them_is_sampled():
    batch = ragged_batch(1000)
    assert sorted(batch.lengths.tolist()) == [*ROW_TOKENS]
    assert batch.lengths.tolist() != [*ROW_TOKENS]
    assert float(batch.action_mask.sum()) / sum(ROW_TOKENS) == pytest.approx(0.25, abs=0.01)
    assert torch.equal(batch.trajectory, torch.arange(len(ROW_TOKENS)))


@pytest.mark.slow
def test_packed_rows_take_less_time_and_memory_than_padded_ones_for_the_same_gradient():
    found = compare_ragged(random_model(), ragged_batch(18, (20, 60, 100, 400)), 2)
    assert found["gradient_error"] < 1e-5
    assert found["tokens_per_s_ratio"] > 1
    assert found["memory_ratio"] < 1
