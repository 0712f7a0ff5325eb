"""`splitmeans bench speed`: how long each stage takes, beside what people would use instead."""
