"""What a run did, for people: one HTML file, a results row, and trajectories in the terminal."""

from agentrl.report.compare import results_table
from agentrl.report.html import write_report
from agentrl.report.summary import Run, read_run
from agentrl.report.view import render_rollouts, render_trajectory

__all__ = ["Run", "read_run", "render_rollouts", "render_trajectory", "results_table", "write_report"]
