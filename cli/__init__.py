"""What people touch at a terminal: the command `crucible`."""
