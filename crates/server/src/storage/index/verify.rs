//! Whether the rows of an index are those of the entities: compared as multisets, by sums of hashes.
