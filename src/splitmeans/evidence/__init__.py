"""What is filed away about a run: a bundle that verifies, and an assessment of its risks."""
