"""The standard library of the language: data that sources load as @crucible//NAME.star."""
