"""Calls: from valid params to the envelope of a record or an error."""
