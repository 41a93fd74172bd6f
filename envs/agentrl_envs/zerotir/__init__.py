"""ZeroTIR: problems solved with a Python tool; the code runs in a sandbox and the final answer is graded."""
