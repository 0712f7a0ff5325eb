"""Registers of users alone, which both sketch methods begin with."""
