"""A source becomes IR here: scan, evaluate, lower; and where it is wrong, parse, read and place."""
