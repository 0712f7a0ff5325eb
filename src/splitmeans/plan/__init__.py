"""What is settled before anything is released: sizes, noise, who releases what, and its cost."""
