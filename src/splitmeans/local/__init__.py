"""Phase 1, local clustering: each party's columns become a few private centres.

Public code reads `laws/`; `guided_lloyd.py` and `detail.py` see rows.
"""
