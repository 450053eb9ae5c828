"""Results are shown: diagnostics as text and JSON, and what else becomes of a workflow."""
