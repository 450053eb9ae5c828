"""What people touch in an editor: the language server."""
