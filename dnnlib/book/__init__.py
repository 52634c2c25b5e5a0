"""What makes a chapter: its experiment, records, tables, figures, and the run of it."""
