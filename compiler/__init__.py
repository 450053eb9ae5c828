"""The compiler: a source becomes checked IR, and whatever is wrong is said at its place."""
