//! Tables as clients read them.

use super::escape::{push_escaped, push_string};
use crate::table::negotiate::MetadataLevel;

/// How the tables of one response are written.
#[derive(Clone, Copy, Debug)]
pub struct TableFormat<'a> {
    pub level: MetadataLevel,
    /// The service root as the client addressed it.
    pub base: &'a str,
    pub account: &'a str,
}

impl TableFormat<'_> {
    /// One table as a document of its own.
    pub fn element(&self, name: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.push(b'{');
        self.push_metadata(&mut out, "/@Element");
        self.push_members(&mut out, name);
        out.push(b'}');
        out
    }

    /// A list of tables.
    pub fn list<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        out.push(b'{');
        self.push_metadata(&mut out, "");
        out.extend_from_slice(b"\"value\":[");
        for (index, name) in names.into_iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"{" } else { b",{" });
            self.push_members(&mut out, name);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        out
    }

    fn push_metadata(&self, out: &mut Vec<u8>, suffix: &str) {
        if self.level != MetadataLevel::None {
            push_member(out, "odata.metadata", &[self.base, "/$metadata#Tables", suffix]);
        }
    }

    fn push_members(&self, out: &mut Vec<u8>, name: &str) {
        if self.level == MetadataLevel::Full {
            push_member(out, "odata.type", &[self.account, ".Tables"]);
            push_member(out, "odata.id", &[self.base, "/Tables('", name, "')"]);
            push_member(out, "odata.editLink", &["Tables('", name, "')"]);
        }
        out.extend_from_slice(b"\"TableName\":");
        push_string(out, name.as_bytes());
    }
}

/// A member whose value is the concatenation of `texts`, and a comma.
fn push_member(out: &mut Vec<u8>, name: &str, texts: &[&str]) {
    push_string(out, name.as_bytes());
    out.extend_from_slice(b":\"");
    for text in texts {
        push_escaped(out, text.as_bytes());
    }
    out.extend_from_slice(b"\",");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(level: MetadataLevel) -> TableFormat<'static> {
        TableFormat { level, base: "https://acct.table.core.windows.net", account: "acct" }
    }

    /// Wire reference 3.1 to 3.3.
    #[test]
    fn documents_are_those_of_the_service() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(text(format(MetadataLevel::None).element("t")), r#"{"TableName":"t"}"#);
        assert_eq!(
            text(format(MetadataLevel::Minimal).element("t")),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#Tables/@Element","TableName":"t"}"#
        );
        assert_eq!(
            text(format(MetadataLevel::Minimal).list(["a", "b"])),
            r#"{"odata.metadata":"https://acct.table.core.windows.net/$metadata#Tables","value":[{"TableName":"a"},{"TableName":"b"}]}"#
        );
        assert_eq!(text(format(MetadataLevel::None).list([])), r#"{"value":[]}"#);
        assert!(text(format(MetadataLevel::Full).element("t")).contains(
            r#""odata.type":"acct.Tables","odata.id":"https://acct.table.core.windows.net/Tables('t')","odata.editLink":"Tables('t')","TableName":"t""#
        ));
    }
}
