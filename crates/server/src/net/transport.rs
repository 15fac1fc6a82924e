//! A socket that does not wait for ever for a peer to take what is written, and that is closed in order.
//!
//! A client that asks for large pages and never reads would keep them in memory. Its socket takes no more bytes
//! then; when the [`StallTimeout`] is used up, the write fails and the connection ends. This lies below TLS and HTTP, so
//! that all of them share it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::net::stall_timeout::StallTimeout;

/// How long a closed socket goes on to take in what the peer had already sent.
const LINGER: Duration = Duration::from_secs(1);
/// How much it takes in: what a client has under way, not what it goes on to send.
const LINGER_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Transport {
    socket: TcpStream,
    stall_timeout: StallTimeout,
    /// Bytes that the socket has taken, for the [`H2Watchdog`](crate::net::h2_watchdog).
    written: Arc<AtomicU64>,
    /// Since when the peer takes nothing.
    blocked_since: Option<Instant>,
    /// Made when it is first needed, which is never for most connections.
    timer: Option<Pin<Box<Sleep>>>,
    closing: Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    /// The peer has been told; that many bytes of what it has sent are still taken, and thrown away.
    Lingering {
        bytes_left: usize,
    },
}

impl Transport {
    /// `stall_max`: how long a peer may take nothing of what is written.
    pub(crate) fn new(socket: TcpStream, stall_max: Duration) -> Self {
        let stall_timeout = StallTimeout::new(stall_max);
        let written = Arc::default();
        Self {
            socket,
            stall_timeout,
            written,
            blocked_since: None,
            timer: None,
            closing: Closing::No,
        }
    }

    /// A count of the bytes that the socket has taken.
    pub(crate) fn written(&self) -> Arc<AtomicU64> {
        self.written.clone()
    }

    /// Counts what was written, or how long nothing could be.
    fn account(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => {
                if let Some(since) = self.blocked_since.take() {
                    self.stall_timeout.waited(since.elapsed());
                }
                self.stall_timeout.moved(*bytes);
                self.written.fetch_add(*bytes as u64, Ordering::Relaxed);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                if self.blocked_since.is_none() {
                    let now = Instant::now();
                    self.blocked_since = Some(now);
                    self.set_timer(now + self.stall_timeout.left());
                }
                if self.poll_timer(context).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        written
    }

    fn set_timer(&mut self, at: Instant) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(at),
            None => self.timer = Some(Box::pin(sleep_until(at))),
        }
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(context))
    }

    /// Takes in what the peer has sent, if anything is there: bytes that nobody reads turn a close into a reset,
    /// which can overtake the answer.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut space = [0; 8 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            let read = Pin::new(&mut self.socket).poll_read(context, &mut buffer);
            let bytes = buffer.filled().len();
            let bytes_left = match (read, self.closing) {
                (Poll::Ready(Ok(())), Closing::No) if bytes > 0 => {
                    self.set_timer(Instant::now() + LINGER);
                    LINGER_BYTES_MAX
                }
                (Poll::Ready(Ok(())), Closing::Lingering { bytes_left }) if bytes > 0 => bytes_left,
                (Poll::Pending, Closing::Lingering { .. }) => return self.poll_timer(context),
                _ => return Poll::Ready(()),
            };
            let Some(bytes_left) = bytes_left.checked_sub(bytes) else { return Poll::Ready(()) };
            self.closing = Closing::Lingering { bytes_left };
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.account(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, buffers);
        self.account(context, written)
    }

    /// True also because a reply that is queued holds back the next one, while one that is copied would not: a
    /// client that sends requests and never reads is answered once.
    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing == Closing::No {
            ready!(Pin::new(&mut self.socket).poll_shutdown(context))?;
        }
        self.poll_linger(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const STALL_MAX: Duration = Duration::from_millis(200);
    const MUCH: usize = 64 * 1024 * 1024;

    async fn pair() -> (Transport, TcpStream) {
        pair_with(STALL_MAX).await
    }

    async fn pair_with(stall_max: Duration) -> (Transport, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (peer, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (Transport::new(accepted.unwrap().0, stall_max), peer.unwrap())
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (mut transport, _peer) = pair().await;
        let written = transport.write_all(&vec![0; MUCH]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// A byte now and then is no progress.
    #[tokio::test]
    async fn a_peer_that_takes_a_trickle_is_given_up() {
        let (mut transport, mut peer) = pair().await;
        let trickle = tokio::spawn(async move {
            while peer.read_u8().await.is_ok() {
                tokio::time::sleep(STALL_MAX / 10).await;
            }
        });
        let written = transport.write_all(&vec![0; MUCH]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
        trickle.abort();
    }

    /// However long it takes.
    #[tokio::test]
    async fn a_peer_that_takes_all_is_served() {
        let stall_max = Duration::from_secs(1);
        let (mut transport, mut peer) = pair_with(stall_max).await;
        let reading = tokio::spawn(async move {
            let mut space = vec![0; 1024 * 1024];
            let mut total = 0;
            while total < MUCH {
                total += peer.read(&mut space).await.unwrap();
                tokio::time::sleep(stall_max / 50).await;
            }
        });
        transport.write_all(&vec![0; MUCH]).await.unwrap();
        reading.await.unwrap();
    }

    /// The answer arrives although the peer had sent more than was read.
    #[tokio::test]
    async fn closing_does_not_reset() {
        let (mut transport, mut peer) = pair().await;
        peer.write_all(&[0; 64 * 1024]).await.unwrap();
        transport.read_u8().await.unwrap();
        transport.write_all(b"too much").await.unwrap();
        let closing = tokio::spawn(async move { transport.shutdown().await });
        let mut answer = Vec::new();
        peer.read_to_end(&mut answer).await.expect("no reset");
        assert_eq!(answer, b"too much");
        drop(peer);
        closing.await.unwrap().unwrap();
    }

    /// A peer that has sent nothing holds nothing up.
    #[tokio::test]
    async fn closing_an_idle_connection_is_immediate() {
        let (mut transport, _peer) = pair().await;
        let closed = std::future::poll_fn(|context| {
            Poll::Ready(Pin::new(&mut transport).poll_shutdown(context).is_ready())
        });
        assert!(closed.await);
    }
}
