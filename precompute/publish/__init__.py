"""A run on its way to other people: as an archive, a folder, a data set of the hub; and back into a cache."""
