"""Speed on fixed workloads: environments, rollouts and updates, small enough for a laptop."""
