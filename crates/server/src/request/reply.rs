//! A reply before the headers that every reply has.

use bytes::Bytes;
use http::Response;

pub(crate) type Reply = Response<Bytes>;
