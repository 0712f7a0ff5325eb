"""What travels between participants: message types, their bytes, and the keys that bind them."""
