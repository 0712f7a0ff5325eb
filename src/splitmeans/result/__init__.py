"""What is published: made, signed, written to a folder, read back and checked."""
