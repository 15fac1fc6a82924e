//! HTTP/1.1 with nothing hidden: what is sent is what was given, what comes back is kept as it came.

use std::io::{BufRead, BufReader, Read, Write};

/// What a server answered.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// The value of a header; a repeated one fails the test.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self
            .headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is repeated");
        value
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn etag(&self) -> String {
        self.header("etag").unwrap_or_else(|| panic!("no ETag in {self:?}")).to_owned()
    }

    /// The response itself, if it has this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:?} {}", self.headers, self.text_or_size());
        self
    }

    /// The response itself, if it is this error.
    #[track_caller]
    pub(crate) fn expect_error(self, status: u16, code: &str) -> Self {
        let found = (self.status, self.code());
        assert_eq!(found, (status, Some(code.to_owned())), "{}", self.text_or_size());
        self
    }

    /// The code of an error, from JSON or XML.
    pub(crate) fn code(&self) -> Option<String> {
        if let Ok(json) = serde_json::from_slice::<serde_json::Value>(&self.body) {
            return json["odata.error"]["code"].as_str().map(str::to_owned);
        }
        let text = self.text_or_size();
        let code = between(text, "<m:code>", "</m:code>");
        code.or_else(|| between(text, "<Code>", "</Code>")).map(str::to_owned)
    }

    /// The message of an error without request id and time, which must follow it.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        let whole = match serde_json::from_slice::<serde_json::Value>(&self.body) {
            Ok(json) => json["odata.error"]["message"]["value"].as_str().map(str::to_owned),
            Err(_) => between(self.text(), "<m:message xml:lang=\"en-US\">", "</m:message>")
                .map(str::to_owned),
        };
        let whole = whole.unwrap_or_else(|| panic!("no message in {}", self.text()));
        let (message, rest) = whole.split_once("\nRequestId:").expect("a request id");
        assert!(rest.contains("\nTime:"), "{rest}");
        message.to_owned()
    }

    fn text_or_size(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or("(not text)")
    }
}

/// What stands between two marks.
pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

/// Asks for a path without a signature, on a connection of its own.
pub(crate) fn plain_get(address: std::net::SocketAddr, path: &str) -> Response {
    let stream = std::net::TcpStream::connect(address).expect("a connection");
    let mut stream = BufReader::new(stream);
    let headers = [("Host".to_owned(), address.to_string())];
    write(stream.get_mut(), "GET", path, &headers, b"").expect("a request");
    read(&mut stream).expect("an answer")
}

/// Writes a request.
pub(crate) fn write(
    stream: &mut impl Write,
    method: &str,
    target: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> std::io::Result<()> {
    let mut head = format!("{method} {target} HTTP/1.1\r\n");
    for (name, value) in headers {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)?;
    stream.flush()
}

/// Reads a response that has a body, if it says so.
pub(crate) fn read<S: Read>(stream: &mut BufReader<S>) -> std::io::Result<Response> {
    let mut response = read_head(stream)?;
    if response.status == 204 || response.status == 304 {
        return Ok(response);
    }
    if let Some(length) = response.header("content-length") {
        let length = length.parse().map_err(|_| std::io::Error::other("content-length"))?;
        response.body = vec![0; length];
        stream.read_exact(&mut response.body)?;
    } else if response.header("transfer-encoding") == Some("chunked") {
        response.body = read_chunks(stream)?;
    }
    Ok(response)
}

/// Reads a response without a body, as that to HEAD is.
pub(crate) fn read_head<S: Read>(stream: &mut BufReader<S>) -> std::io::Result<Response> {
    let broken = |what: &str| std::io::Error::other(what.to_owned());
    let status_line = line(stream)?;
    let mut words = status_line.splitn(3, ' ');
    if words.next() != Some("HTTP/1.1") {
        return Err(broken(&format!("not a status line: {status_line:?}")));
    }
    let status = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| broken("status"))?;
    let reason = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let line = line(stream)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken("header"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(Response { status, reason, headers, body: Vec::new() })
}

fn read_chunks<S: Read>(stream: &mut BufReader<S>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&line(stream)?, 16).map_err(std::io::Error::other)?;
        let start = body.len();
        body.resize(start + size, 0);
        stream.read_exact(&mut body[start..])?;
        line(stream)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn line<S: Read>(stream: &mut BufReader<S>) -> std::io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
