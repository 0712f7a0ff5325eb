"""Ids of users: the forms they come in, and the one form that all parties compare."""
