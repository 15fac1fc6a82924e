//! The Tavola table service.
