//! The document of List Queues.

use super::message::push_text;
use super::metadata::Metadata;
use super::parameters::ListParameters;
use crate::xml::syntax::only_xml;

/// Writes the document, queue by queue.
#[derive(Debug)]
pub struct QueueListWriter {
    out: Vec<u8>,
    has_queues: bool,
}

impl QueueListWriter {
    /// `endpoint`: the service root as the client addressed it, with a slash at the end.
    pub fn new(endpoint: &str, parameters: &ListParameters<'_>) -> Self {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice("\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>".as_bytes());
        out.extend_from_slice(b"<EnumerationResults ServiceEndpoint=\"");
        let mut escaped = Vec::new();
        push_text(&mut escaped, endpoint);
        for byte in escaped {
            match byte {
                b'"' => out.extend_from_slice(b"&quot;"),
                byte => out.push(byte),
            }
        }
        out.extend_from_slice(b"\">");
        let mut list = Self { out, has_queues: false };
        if let Some(prefix) = parameters.prefix {
            list.leaf("Prefix", prefix);
        }
        if let Some(marker) = parameters.marker {
            list.leaf("Marker", marker);
        }
        if let Some(max_results) = parameters.max_results {
            list.leaf("MaxResults", itoa::Buffer::new().format(max_results));
        }
        list
    }

    /// Adds a queue, with its metadata where that was asked for.
    pub fn push(&mut self, name: &str, metadata: Option<&Metadata>) {
        let start: &[u8] = if self.has_queues { b"<Queue>" } else { b"<Queues><Queue>" };
        self.has_queues = true;
        self.out.extend_from_slice(start);
        self.leaf("Name", name);
        if let Some(metadata) = metadata {
            if metadata.is_empty() {
                self.out.extend_from_slice(b"<Metadata />");
            } else {
                self.out.extend_from_slice(b"<Metadata>");
                for (name, value) in metadata.sorted() {
                    self.leaf(name, &value);
                }
                self.out.extend_from_slice(b"</Metadata>");
            }
        }
        self.out.extend_from_slice(b"</Queue>");
    }

    /// How long the document is so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// `next`: account and name that the next page begins with.
    pub fn finish(mut self, next: Option<(&str, &str)>) -> Vec<u8> {
        let end: &[u8] = if self.has_queues { b"</Queues>" } else { b"<Queues />" };
        self.out.extend_from_slice(end);
        match next {
            Some((account, name)) => self.leaf("NextMarker", &["/", account, "/", name].concat()),
            None => self.out.extend_from_slice(b"<NextMarker />"),
        }
        self.out.extend_from_slice(b"</EnumerationResults>");
        self.out
    }

    fn leaf(&mut self, name: &str, text: &str) {
        let out = &mut self.out;
        out.push(b'<');
        out.extend_from_slice(name.as_bytes());
        if text.is_empty() {
            out.extend_from_slice(b" />");
            return;
        }
        out.push(b'>');
        push_text(out, &only_xml(text));
        out.extend_from_slice(b"</");
        out.extend_from_slice(name.as_bytes());
        out.push(b'>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uri::QueryString;

    const HEAD: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"https://acct.queue.core.windows.net/\">";

    fn list(query: &str, queues: &[(&str, Option<Metadata>)], next: Option<&str>) -> String {
        let query = QueryString::parse(query).unwrap();
        let parameters = ListParameters::parse(&query).unwrap();
        let mut list = QueueListWriter::new("https://acct.queue.core.windows.net/", &parameters);
        for (name, metadata) in queues {
            list.push(name, metadata.as_ref());
        }
        String::from_utf8(list.finish(next.map(|next| ("acct", next)))).unwrap()
    }

    /// The recorded pages of section 3.1.
    #[test]
    fn pages_are_those_of_the_live_service() {
        let queues = ["listqueue0", "listqueue1", "listqueue2"].map(|name| (name, None));
        let page = list("prefix=listqueue&maxresults=3", &queues, Some("listqueue3"));
        assert_eq!(
            page,
            format!(
                "{HEAD}<Prefix>listqueue</Prefix><MaxResults>3</MaxResults><Queues><Queue><Name>listqueue0</Name></Queue><Queue><Name>listqueue1</Name></Queue><Queue><Name>listqueue2</Name></Queue></Queues><NextMarker>/acct/listqueue3</NextMarker></EnumerationResults>"
            )
        );
        let queues = [("listqueue3", Some(Metadata::default()))];
        let page = list("prefix=listqueue&marker=/acct/listqueue3&include=metadata", &queues, None);
        assert_eq!(
            page,
            format!(
                "{HEAD}<Prefix>listqueue</Prefix><Marker>/acct/listqueue3</Marker><Queues><Queue><Name>listqueue3</Name><Metadata /></Queue></Queues><NextMarker /></EnumerationResults>"
            )
        );
    }

    #[test]
    fn what_there_is_none_of_is_an_empty_element() {
        assert_eq!(
            list("prefix=", &[], None),
            format!("{HEAD}<Prefix /><Queues /><NextMarker /></EnumerationResults>")
        );
    }

    /// What is echoed may hold anything, and a document may not.
    #[test]
    fn every_page_is_a_document() {
        let metadata = Metadata::from_headers([("x-ms-meta-a", "\u{ffff}")]).unwrap();
        let query = "prefix=a%00%01&marker=/acct/%EF%BF%BF";
        let page = list(query, &[("abc", Some(metadata))], None);
        for element in ["<Prefix>a__</Prefix>", "<Marker>/acct/_</Marker>", "<a>_</a>"] {
            assert!(page.contains(&element.replace('_', "\u{fffd}")), "{page}");
        }
        crate::xml::document::parse(page.as_bytes()).unwrap();
    }

    #[test]
    fn values_of_metadata_are_escaped() {
        let metadata = Metadata::from_headers([("x-ms-meta-a", "<&>"), ("x-ms-meta-B", "")]);
        let page = list("", &[("abc", Some(metadata.unwrap()))], None);
        assert!(page.contains("<Metadata><a>&lt;&amp;&gt;</a><B /></Metadata>"), "{page}");
    }
}
