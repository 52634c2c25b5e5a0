"""What makes the book: the papers' numbers, experiments, records, verdicts, chapters, pages."""
