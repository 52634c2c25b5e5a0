"""What was measured, and what it says of the claims: records, rules, intervals, verdicts."""
