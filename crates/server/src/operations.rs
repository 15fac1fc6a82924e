//! The table of a service's operations, one line each.

use crate::request::body::BodyLimit;

/// What is the same for every request of an operation.
#[derive(Debug)]
pub(crate) struct OperationSpec {
    /// In metrics and logs.
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) body: BodyLimit,
}

/// Whether an operation changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
    /// The body decides: a batch may hold a query alone.
    ByBody,
}

impl Effect {
    /// Whether it may be asked of the secondary, as far as is known before the body.
    pub(crate) fn may_read_only(self) -> bool {
        self != Self::Write
    }

    /// Whether its answer may be refused. A change that is made has to be answered, or clients would make it again.
    pub(crate) fn is_repeatable(self) -> bool {
        self == Self::Read
    }
}

/// Which operation of its service a request was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationIndex {
    /// A line of the service's table.
    Of(usize),
    Preflight,
    /// A request that named no operation.
    Unrecognized,
}

impl OperationIndex {
    /// The name in metrics and logs.
    pub(crate) fn label(self, specs: &'static [OperationSpec]) -> &'static str {
        match self {
            Self::Of(index) => specs.get(index).map_or(UNRECOGNIZED, |spec| spec.name),
            Self::Preflight => PREFLIGHT,
            Self::Unrecognized => UNRECOGNIZED,
        }
    }
}

pub(crate) const PREFLIGHT: &str = "Preflight";
pub(crate) const UNRECOGNIZED: &str = "Unrecognized";

/// The operations of a service, one line each: its name and what it addresses, whether it reads or writes, and how much
/// of a body it takes. The second enum has the operations without what they address, to be compared with.
macro_rules! operations {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $enum:ident<$a:lifetime> as $kind:ident {
            $( $name:ident $(($addressed:ty))? => $effect:ident, $body:expr; )*
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $enum<$a> {
            $( $name $(($addressed))?, )*
        }

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $kind {
            $( $name, )*
        }

        impl From<$kind> for $crate::operations::OperationIndex {
            fn from(kind: $kind) -> Self {
                Self::Of(kind as usize)
            }
        }

        impl $enum<'_> {
            pub(crate) const SPECS: &'static [$crate::operations::OperationSpec] = &[
                $( $crate::operations::OperationSpec {
                    name: stringify!($name),
                    effect: $crate::operations::Effect::$effect,
                    body: $body,
                }, )*
            ];

            pub(crate) fn index(&self) -> usize {
                match self {
                    $( Self::$name { .. } => $kind::$name as usize, )*
                }
            }
        }
    };
}

pub(crate) use operations;
