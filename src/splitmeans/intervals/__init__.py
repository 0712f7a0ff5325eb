"""How far published sizes of segments may be off, from published values alone."""
