//! What the files of a data folder look like, and whether they are what was written.

pub(crate) mod archive;
pub(crate) mod blocks;
pub(crate) mod clean_mark;
pub(crate) mod cursor;
pub(crate) mod folder;
pub(crate) mod inventory;
pub(crate) mod journal;
pub(crate) mod journal_links;
pub(crate) mod manifest;
mod sealed_text;
pub(crate) mod store_record;
