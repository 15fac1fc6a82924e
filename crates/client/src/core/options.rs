//! The options that clients of all services take.

use std::time::Duration;

use azure_core::http::{ClientMethodOptions, ClientOptions};

/// Options of a client. [`builder`](crate::TableServiceClient::builder) sets them one by one.
///
/// ```
/// # fn main() -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::azure_core::http::{ClientOptions, ExponentialRetryOptions, RetryOptions};
/// use tavola_client::{ServiceClientOptions, TableServiceClient};
///
/// let retry = ExponentialRetryOptions { max_retries: 3, ..Default::default() };
/// let options = ServiceClientOptions {
///     client_options: ClientOptions {
///         retry: RetryOptions::exponential(retry),
///         ..Default::default()
///     },
///     deadline: Some(Duration::from_secs(20)),
///     ..Default::default()
/// };
/// let service =
///     TableServiceClient::from_connection_string("UseDevelopmentStorage=true", Some(options))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ServiceClientOptions {
    /// Retries, policies, transport and logging, as every client of `azure_core` has them.
    pub client_options: ClientOptions,
    /// The scope that tokens are asked for; that of Azure Storage unless set.
    pub token_scope: Option<String>,
    /// How long a call may take with all its retries; 100 seconds unless set.
    pub deadline: Option<Duration>,
    /// How often a connection that cannot be made is tried again, with short pauses; twice unless set. The retries of
    /// [`client_options`](Self::client_options) are for connections that broke and for servers that are busy.
    pub connect_retries: Option<u32>,
}

/// Options of a call that has no others.
///
/// ```no_run
/// # async fn run(table: tavola_client::TableClient) -> tavola_client::Result<()> {
/// use std::time::Duration;
/// use tavola_client::CallOptions;
/// use tavola_client::azure_core::http::{ClientMethodOptions, Context};
///
/// /// What a policy of the caller's own finds in the context of each call.
/// struct Purpose(&'static str);
///
/// let context = Context::new().with_value(Purpose("nightly clean-up"));
/// let options = CallOptions {
///     method_options: ClientMethodOptions { context },
///     deadline: Some(Duration::from_secs(5)),
/// };
/// table.delete(Some(options)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The context of the call: a request id of the caller's own, values for the caller's policies.
    pub method_options: ClientMethodOptions<'static>,
    /// How long the call may take with all its retries; that of the client unless set.
    pub deadline: Option<Duration>,
}
