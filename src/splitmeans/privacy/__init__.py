"""What a run may cost, what each release costs, and the noise that makes it so."""
