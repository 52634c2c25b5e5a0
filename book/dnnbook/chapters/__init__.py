"""What makes a chapter, and runs it again: its parameters, experiment, statements and sweeps."""
