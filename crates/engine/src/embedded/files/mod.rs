//! What the files of a data folder look like, and whether they are what was written.

pub(crate) mod archive;
pub(crate) mod blocks;
pub(crate) mod clean_mark;
pub(crate) mod cursor;
pub(crate) mod folder;
pub(crate) mod journal;
pub(crate) mod manifest;
