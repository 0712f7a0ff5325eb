"""Public parameters, scales and privacy events of the local algorithms; nothing here sees rows."""
