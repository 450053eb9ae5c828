"""The ground floor: IR types, canonical form, diagnostics and JSON Schemas.

Imports nothing of the project and, at import, nothing but the standard library.
"""
