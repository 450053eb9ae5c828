"""What people touch at a terminal: the command `crucible`."""

VERSION = "0.1.0"
