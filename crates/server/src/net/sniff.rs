//! Which HTTP a connection speaks, found out within a time limit.
//!
//! HTTP/2 announces itself with a fixed preface. The bytes that were read to find out are handed on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// What every HTTP/2 connection begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Reads just enough to tell. `None` if the connection ends, fails or stays silent for too long.
pub(crate) async fn sniff<S>(stream: S, limit: Duration) -> Option<(Protocol, Sniffed<S>)>
where
    S: AsyncRead + Unpin,
{
    let mut sniffed = Sniffed { stream, read: [0; PREFACE.len()], length: 0, given: 0 };
    let protocol = tokio::time::timeout(limit, sniffed.fill()).await.ok()?.ok()??;
    Some((protocol, sniffed))
}

/// A stream that begins with the bytes that were read from it already.
#[derive(Debug)]
pub(crate) struct Sniffed<S> {
    stream: S,
    read: [u8; PREFACE.len()],
    length: usize,
    given: usize,
}

impl<S: AsyncRead + Unpin> Sniffed<S> {
    async fn fill(&mut self) -> io::Result<Option<Protocol>> {
        while self.length < PREFACE.len() {
            let count = self.stream.read(&mut self.read[self.length..]).await?;
            if count == 0 {
                return Ok(None);
            }
            self.length += count;
            if !PREFACE.starts_with(&self.read[..self.length]) {
                return Ok(Some(Protocol::Http1));
            }
        }
        Ok(Some(Protocol::Http2))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sniffed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.given < self.length {
            let count = buffer.remaining().min(self.length - self.given);
            buffer.put_slice(&self.read[self.given..self.given + count]);
            self.given += count;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sniffed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(bytes: &'static [u8]) -> (Option<Protocol>, Vec<u8>) {
        let Some((protocol, mut stream)) = sniff(bytes, Duration::from_secs(60)).await else {
            return (None, Vec::new());
        };
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        (Some(protocol), all)
    }

    #[tokio::test]
    async fn the_preface_tells_and_nothing_is_lost() {
        let request = b"GET / HTTP/1.1\r\n\r\n";
        assert_eq!(told(request).await, (Some(Protocol::Http1), request.to_vec()));
        let put = b"PRIX";
        assert_eq!(told(put).await, (Some(Protocol::Http1), put.to_vec()));
        let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nframes";
        assert_eq!(told(http2).await, (Some(Protocol::Http2), http2.to_vec()));
        assert_eq!(told(b"").await.0, None);
        assert_eq!(told(b"PRI * HT").await.0, None);
    }
}
