"""What the sentences of the chapters rest on: a module a paper."""
