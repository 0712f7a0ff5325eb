"""A whole run of a study on made-up tables, before anything real is joined or charged."""
