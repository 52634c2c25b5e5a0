"""What several experiments share, computed once and kept."""
