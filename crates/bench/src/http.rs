//! One keep-alive connection of HTTP/1.1, written for a driver that shares two cores with the server it measures.
//!
//! The request is bytes that the caller prepared, the answer stays in a buffer that is used again, and of the headers
//! only those are kept that some measurement looks at. It speaks to the servers that are measured, not to the world.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection that opens itself when it is first used, and again after it broke.
pub struct Connection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    /// The answer: what was read is `buffer[..filled]`.
    buffer: Vec<u8>,
    filled: usize,
    head: Head,
    body: Range<usize>,
}

/// What an answer's head says, apart from the status in places of the buffer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    status: u16,
    length: Option<usize>,
    chunked: bool,
    close: bool,
    etag: Option<Range<usize>>,
    next_partition_key: Option<Range<usize>>,
    next_row_key: Option<Range<usize>>,
}

impl Connection {
    pub fn new(address: SocketAddr) -> Self {
        let buffer = vec![0; 16 * 1024];
        Self { address, stream: None, buffer, filled: 0, head: Head::default(), body: 0..0 }
    }

    /// Sends a request and reads its answer to the end; gives the status.
    ///
    /// # Errors
    /// The connection broke or the answer is not HTTP/1.1; the next exchange opens a new connection.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<u16> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address).await?,
        };
        stream.write_all(request).await?;
        self.filled = 0;
        let body_at = self.read_head(&mut stream).await?;
        self.read_body(&mut stream, body_at).await?;
        if !self.head.close {
            self.stream = Some(stream);
        }
        Ok(self.head.status)
    }

    pub fn body(&self) -> &[u8] {
        &self.buffer[self.body.clone()]
    }

    pub fn etag(&self) -> Option<&str> {
        self.text(self.head.etag.as_ref())
    }

    pub fn next_partition_key(&self) -> Option<&str> {
        self.text(self.head.next_partition_key.as_ref())
    }

    pub fn next_row_key(&self) -> Option<&str> {
        self.text(self.head.next_row_key.as_ref())
    }

    fn text(&self, range: Option<&Range<usize>>) -> Option<&str> {
        std::str::from_utf8(&self.buffer[range?.clone()]).ok()
    }

    async fn read_head(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        let mut searched = 0;
        loop {
            self.read_more(stream).await?;
            if let Some(at) = memmem::find(&self.buffer[searched..self.filled], b"\r\n\r\n") {
                let end = searched + at + 4;
                self.head = Head::parse(&self.buffer[..end]).ok_or_else(|| malformed("head"))?;
                return Ok(end);
            }
            searched = self.filled.saturating_sub(3);
        }
    }

    async fn read_body(&mut self, stream: &mut TcpStream, start: usize) -> io::Result<()> {
        let bodiless = self.head.status == 204 || self.head.status == 304;
        let end = match (bodiless, self.head.chunked, self.head.length) {
            (true, ..) => start,
            (false, true, _) => self.read_chunks(stream, start).await?,
            (false, false, Some(length)) => {
                self.read_until(stream, start + length).await?;
                start + length
            }
            (false, false, None) => return Err(malformed("length")),
        };
        self.body = start..end;
        Ok(())
    }

    /// Joins the chunks where they stand, and gives the end of the whole.
    async fn read_chunks(&mut self, stream: &mut TcpStream, start: usize) -> io::Result<usize> {
        let (mut at, mut end) = (start, start);
        loop {
            let line_end = self.read_line(stream, at).await?;
            let size = chunk_size(&self.buffer[at..line_end]).ok_or_else(|| malformed("chunk"))?;
            at = line_end + 2;
            if size == 0 {
                // Trailers, up to and with an empty line.
                while self.read_line(stream, at).await? > at {
                    at = self.read_line(stream, at).await? + 2;
                }
                return Ok(end);
            }
            self.read_until(stream, at + size + 2).await?;
            self.buffer.copy_within(at..at + size, end);
            end += size;
            at += size + 2;
        }
    }

    /// Where the line that starts at `at` ends.
    async fn read_line(&mut self, stream: &mut TcpStream, at: usize) -> io::Result<usize> {
        loop {
            if let Some(end) = memmem::find(&self.buffer[at..self.filled], b"\r\n") {
                return Ok(at + end);
            }
            self.read_more(stream).await?;
        }
    }

    async fn read_until(&mut self, stream: &mut TcpStream, end: usize) -> io::Result<()> {
        if self.buffer.len() < end {
            self.buffer.resize(end.next_power_of_two(), 0);
        }
        while self.filled < end {
            self.read_more(stream).await?;
        }
        Ok(())
    }

    async fn read_more(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        match stream.read(&mut self.buffer[self.filled..]).await? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the server")),
            count => {
                self.filled += count;
                Ok(())
            }
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the answer has no readable {what}"))
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let status = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        let mut head =
            Self { status: std::str::from_utf8(status).ok()?.parse().ok()?, ..Self::default() };
        let mut at = memmem::find(bytes, b"\r\n")? + 2;
        while let Some(length) = memmem::find(&bytes[at..], b"\r\n").filter(|length| *length > 0) {
            head.take_line(bytes, at..at + length)?;
            at += length + 2;
        }
        Some(head)
    }

    fn take_line(&mut self, bytes: &[u8], line: Range<usize>) -> Option<()> {
        let colon = line.start + memchr::memchr(b':', &bytes[line.clone()])?;
        let name = &bytes[line.start..colon];
        let padding = bytes[colon + 1..line.end].iter().take_while(|byte| **byte == b' ').count();
        let range = colon + 1 + padding..line.end;
        let value = &bytes[range.clone()];
        // Most headers are told apart by their length alone.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"etag") => self.etag = Some(range),
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.close = value.eq_ignore_ascii_case(b"close");
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                self.length = Some(std::str::from_utf8(value).ok()?.parse().ok()?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                self.chunked = value.eq_ignore_ascii_case(b"chunked");
            }
            28 if name.eq_ignore_ascii_case(b"x-ms-continuation-nextrowkey") => {
                self.next_row_key = Some(range);
            }
            34 if name.eq_ignore_ascii_case(b"x-ms-continuation-nextpartitionkey") => {
                self.next_partition_key = Some(range);
            }
            _ => {}
        }
        Some(())
    }
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A server that takes requests which end with a blank line, and answers each with the next of these bytes, a few
    /// at a time.
    async fn scripted(answers: Vec<&'static [u8]>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut answers = answers.into_iter();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                while stream.read(&mut request).await.is_ok_and(|count| count > 0) {
                    let answer = answers.next().expect("a request too many");
                    for piece in answer.chunks(7) {
                        stream.write_all(piece).await.unwrap();
                        tokio::task::yield_now().await;
                    }
                    if memmem::find(answer, b"Connection: close").is_some() {
                        break;
                    }
                }
            }
        });
        address
    }

    #[tokio::test]
    async fn answers_of_every_form_are_read_in_turn() {
        let address = scripted(vec![
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: W/\"x\"\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-ms-continuation-NextPartitionKey: 1!4!cA--\r\nx-ms-continuation-NextRowKey: r\r\n\r\n5\r\nhello\r\n00a;x=y\r\n, everyone\r\n0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\n\r\n",
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok",
        ])
        .await;
        let mut connection = Connection::new(address);
        assert_eq!(connection.exchange(b"GET /\r\n\r\n").await.unwrap(), 200);
        assert_eq!((connection.body(), connection.etag()), (&b"hello"[..], Some("W/\"x\"")));
        assert_eq!(connection.exchange(b"GET /\r\n\r\n").await.unwrap(), 200);
        assert_eq!(connection.body(), b"hello, everyone");
        assert_eq!(connection.next_partition_key(), Some("1!4!cA--"));
        assert_eq!((connection.next_row_key(), connection.etag()), (Some("r"), None));
        assert_eq!(connection.exchange(b"GET /\r\n\r\n").await.unwrap(), 204);
        assert_eq!((connection.body(), connection.next_row_key()), (&b""[..], None));
        // The server closes; the next exchange is on a new connection.
        assert_eq!(connection.exchange(b"GET /\r\n\r\n").await.unwrap(), 404);
        assert_eq!(connection.exchange(b"GET /\r\n\r\n").await.unwrap(), 202);
        assert_eq!(connection.body(), b"ok");
    }

    #[tokio::test]
    async fn an_answer_cut_short_is_an_error() {
        let address = scripted(vec![
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhello",
        ])
        .await;
        let error = Connection::new(address).exchange(b"GET /\r\n\r\n").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
