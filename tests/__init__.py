"""A package of this name on the first path, because other distributions install one as well."""
