//! Telling connections and requests beyond the limits to come again.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Sent to a connection beyond the limit, before it is closed.
const REJECTION: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
/// Rejected connections that linger at a time, and their share of the connections that are not rejected. A flood
/// beyond it is closed at once, so that rejecting does not use up the file descriptors that the limit was to save.
const LINGERING_MAX: usize = 256;
const LINGERING_SHARE: usize = 8;
/// How long a rejected client is given to read the answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// Rejects connections.
#[derive(Debug)]
pub(crate) struct Rejections {
    lingering: Arc<Semaphore>,
}

impl Rejections {
    pub(crate) fn new(connections_max: usize) -> Self {
        let lingering_max = (connections_max / LINGERING_SHARE).clamp(1, LINGERING_MAX);
        Self { lingering: Arc::new(Semaphore::new(lingering_max)) }
    }

    /// Answers 503 and closes. Within TLS nothing can be said before a handshake, which costs too much here.
    pub(crate) fn reject(&self, stream: TcpStream, is_tls: bool) {
        if is_tls {
            return;
        }
        // At once, and past the runtime: a task may have to wait for longer than the client does. The buffer of a new
        // socket has room for this.
        let Ok(mut stream) = stream.into_std() else { return };
        if stream.write_all(REJECTION).is_err() {
            return;
        }
        let Ok(permit) = self.lingering.clone().try_acquire_owned() else { return };
        let Ok(mut stream) = TcpStream::from_std(stream) else { return };
        tokio::spawn(async move {
            let _permit = permit;
            let _ = tokio::time::timeout(LINGER_TIMEOUT, async {
                stream.shutdown().await?;
                // The request may still come; unread, it would turn the close into a reset, which can overtake
                // the answer.
                while stream.read(&mut [0; 1024]).await? > 0 {}
                std::io::Result::Ok(())
            })
            .await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use tokio::net::TcpListener;

    use super::*;

    /// Also those beyond the number that may linger, and before any task runs.
    #[tokio::test]
    async fn everybody_is_told_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let rejections = Rejections::new(LINGERING_SHARE);
        for _ in 0..10 {
            let mut peer = std::net::TcpStream::connect(address).unwrap();
            peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            rejections.reject(listener.accept().await.unwrap().0, false);
            let mut told = vec![0; REJECTION.len()];
            peer.read_exact(&mut told).unwrap();
            assert_eq!(told, REJECTION);
        }
    }
}
