"""What published segments tell: why they differ, what each party adds, how well labels work."""
