import math
import re

import pytest

from agentrl.report.plots import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Dots,
    Line,
    Scale,
    condense,
    coordinates,
    interval_bar,
    limits,
    line_chart,
    number,
    running_mean,
    stacked_bars,
    ticks,
)


def test_a_series_is_drawn_where_its_values_say():
    chart = line_chart(
        [Line("", [(0, 0.0), (5, 0.5), (10, 1.0)], "blue")], title="t", unit="", size=(156, 150), bounds=(0, 1)
    )
    # x: 0 at the left margin 46, 10 at 156 - 10 = 146; y: 0 at 150 - 30 = 120, 1 at the top margin 20
    assert (LEFT, RIGHT, TOP, BOTTOM) == (46, 10, 20, 30)
    assert 'points="46.0,120.0 96.0,70.0 146.0,20.0"' in chart


def test_values_that_are_no_number_are_left_out_of_the_curve():
    chart = line_chart([Line("", [(0, 0.0), (5, math.nan), (10, 1.0)], "blue")], title="t", unit="", bounds=(0, 1))
    assert chart.count(",20.0") == 1
    assert "nan" not in chart


def test_an_interval_is_drawn_from_its_lower_to_its_upper_end():
    dots = Dots("in", [(0, 0.5, 0.4, 0.7), (1, 0.5, 0.4, 0.7)], "teal")
    chart = line_chart([], [dots], title="t", unit="frac", size=(156, 150), bounds=(0, 1))
    # with points the axis is inset by 10 on both sides; y: 0.4 is 120 - 40 = 80, 0.7 is 120 - 70 = 50
    assert 'class="whisker teal" d="M56.0 80.0V50.0"' in chart
    assert "in, step 0: 50.0 % [40.0, 70.0]" in chart


def test_a_chart_without_a_number_says_so_in_words():
    assert "Entropy: no number was logged." in line_chart([Line("", [], "blue")], title="Entropy", unit="nats")
    assert "Seconds: no number was logged." in stacked_bars({}, title="Seconds", unit="s")


def test_layers_are_stacked_on_top_of_each_other():
    layers = {"rollout": ("blue", [(0, 0.25), (1, 0.5)]), "update": ("teal", [(0, 0.25), (1, 0.5)])}
    chart = stacked_bars(layers, title="t", unit="frac", size=(156, 150))
    # 100 px are 100 %; two slots of 50 px with bars of 24 px around 71 and 121
    assert 'class="bar blue" d="M59.0 120.0V95.0h24.0V120.0zM109.0 120.0V70.0h24.0V120.0z"' in chart
    assert 'class="bar teal" d="M59.0 95.0V70.0h24.0V95.0zM109.0 70.0V20.0h24.0V70.0z"' in chart
    assert "step 1: rollout 50 %, update 50 %" in chart


def test_a_layer_that_is_logged_now_and_then_keeps_its_share_when_bars_are_means():
    often = [(step, 1.0) for step in range(120)]
    chart = stacked_bars({"rollout": ("blue", often), "eval": ("grey", [(0, 10.0)])}, title="t", unit="s")
    assert "step 1: rollout 1 s, eval 5 s" in chart  # 10 s in one of the two steps of the bar
    assert "step 3: rollout 1 s<" in chart


def test_a_single_step_can_be_drawn():
    assert "<circle" in line_chart([Line("", [(3, 0.5)], "blue")], title="t", unit="")
    assert "bar blue" in stacked_bars({"a": ("blue", [(3, 0.5)])}, title="t", unit="s")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 60, [0, 20, 40, 60]),
        (2.2, 2.8, [2.2, 2.4, 2.6, 2.8]),
        (-0.012, 0.011, [-0.01, -0.005, 0, 0.005, 0.01]),
        (0, 1e-6, [0, 2e-7, 4e-7, 6e-7, 8e-7, 1e-6]),
    ],
)
def test_ticks_are_round_numbers_inside_the_axis(low: float, high: float, expected: list[float]):
    assert ticks(low, high) == pytest.approx(expected)


def test_an_axis_starts_at_zero_unless_that_wastes_half_of_it():
    assert limits([1.0, 10.0]) == pytest.approx((0, 10.4))
    assert limits([9.0, 10.0]) == pytest.approx((8.96, 10.04))
    assert limits([0.0, 0.0]) == (0, 1)


def test_a_running_mean_looks_back_only():
    assert running_mean([(0, 1.0), (1, 3.0), (2, 8.0)], 2) == [(0, 1.0), (1, 2.0), (2, 5.5)]


def test_long_series_are_condensed_to_means_of_neighbors():
    assert condense([(0, 1.0), (1, 3.0), (2, 5.0), (3, 7.0), (4, 9.0)], 3) == [(1, 2.0), (3, 6.0), (4, 9.0)]
    assert condense([(0, 1.0), (1, 3.0)], 2) == [(0, 1.0), (1, 3.0)]


def test_coordinates_are_rounded_to_a_tenth_of_a_pixel():
    assert coordinates([(1, 2)], Scale(0, 3, 0, 100), Scale(0, 3, 100, 0)) == "33.3,33.3"


def test_an_interval_bar_spans_its_interval_on_a_track_from_0_to_1():
    bar = interval_bar(0.5, (0.25, 0.75), "teal")
    assert 'd="M32.0 6H88.0"' in bar  # 4 + 0.25 * 112 and 4 + 0.75 * 112
    assert 'cx="60.0"' in bar


def test_labels_cannot_inject_markup():
    chart = line_chart([Line('"><script>', [(0, 1)], "blue")], title="<b>", unit="<i>")
    assert not re.search(r"<(script|b|i)>", chart)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [(0.125, "frac", "12.5 %"), (1430, "tokens/s", "1.43 k tokens/s"), (2.5, "", "2.5"), (math.nan, "nats", "nan")],
)
def test_numbers_carry_their_unit(value: float, unit: str, expected: str):
    assert number(value, unit) == expected
