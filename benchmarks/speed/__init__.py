"""How long each stage of a run takes, beside what people would use instead."""
