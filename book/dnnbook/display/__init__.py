"""How records are shown: tables, plots, colours."""
