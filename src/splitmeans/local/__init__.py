"""Phase 1, local clustering: each party's columns become a few private centres.

Public code reads the laws (`methods.py`, `laws/`); what sees rows is reached by `mechanisms.py`.
"""
