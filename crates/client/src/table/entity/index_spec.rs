//! What an index is declared as.

/// What an index is to be.
///
/// ```
/// use tavola_client::IndexSpec;
///
/// let by_town = IndexSpec::on("Town,LastName").include("Email,Phone");
/// let by_email = IndexSpec::on("Email").unique();
/// let open = IndexSpec::on("Due").filter("Status eq 'open'").browse_as("OpenTasks");
/// assert_eq!((by_town.keys.as_str(), by_email.unique), ("Town,LastName", true));
/// assert_eq!(open.filter, "Status eq 'open'");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexSpec {
    /// The properties in order. `Name!` leaves out entities without it, `Name?` keeps them; `Age:Int32` says which type is
    /// expected.
    pub keys: String,
    /// Properties that the index has copies of: none, some, or `*` for all.
    pub include: String,
    /// Only entities that match this filter are in the index.
    pub filter: String,
    /// No two entities may have the same values.
    pub unique: bool,
    /// A name under which the index can be read as a table, in its order.
    pub browse_as: String,
}

impl IndexSpec {
    /// An index on these properties, without copies.
    pub fn on(keys: impl Into<String>) -> Self {
        Self { keys: keys.into(), ..Self::default() }
    }

    /// With copies of these properties, or of all (`*`).
    #[must_use]
    pub fn include(mut self, names: impl Into<String>) -> Self {
        self.include = names.into();
        self
    }

    /// Of entities that match alone.
    #[must_use]
    pub fn filter(mut self, filter: impl Into<String>) -> Self {
        self.filter = filter.into();
        self
    }

    /// One entity for each combination of values.
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Readable as a table of this name.
    #[must_use]
    pub fn browse_as(mut self, name: impl Into<String>) -> Self {
        self.browse_as = name.into();
        self
    }
}
