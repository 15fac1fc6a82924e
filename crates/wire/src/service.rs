//! The services of a storage account.

/// A service of a storage account, each with a port and a protocol of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Blob,
    Queue,
    Table,
}

impl Service {
    /// As it stands in host names and in the labels of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Queue => "queue",
            Self::Table => "table",
        }
    }

    /// As it stands in connection strings and in what is told to people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Blob => "Blob",
            Self::Queue => "Queue",
            Self::Table => "Table",
        }
    }

    /// The port by convention, which `UseDevelopmentStorage=true` means.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Blob => 10000,
            Self::Queue => 10001,
            Self::Table => 10002,
        }
    }
}
