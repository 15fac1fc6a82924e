//! The properties of the table service of an account: logging, metrics and CORS rules.
//!
//! Logging and metrics are kept and given back as clients set them; nothing here acts on them.
//! Elements may come in any order and are written in the order of the service. Nearly every fault is 400
//! `InvalidXmlDocument`, as the live service checks these documents against a schema; a rule with too
//! many origins or headers is `InvalidXmlNodeValue`.

use super::document::{
    self, Children, DECLARATION, Element, invalid, write_close, write_leaf, write_open,
};
use super::reader::{BYTE_ORDER_MARK, fault_at, line_and_position};
use crate::error::{Result, StorageError};
use crate::error_code::ErrorCode;

/// CORS rules per service.
pub const CORS_RULES_MAX: usize = 5;
/// Days that logs and metrics can be kept.
pub(crate) const RETENTION_DAYS_MAX: u16 = 365;
const WRONG_DAYS: &str =
    "Retention days must be greater than 0 and less than or equal to 365 days.";
/// Characters of all CORS rules together, without the markup.
pub(crate) const CORS_BYTES_MAX: usize = 2048;
/// Origins in a rule.
pub(crate) const CORS_ORIGINS_MAX: usize = 64;
/// Header names in a list of a rule, those with a trailing `*` not counted.
pub(crate) const CORS_LITERAL_HEADERS_MAX: usize = 64;
/// Header prefixes (`x-ms-meta*`) in a list of a rule.
pub(crate) const CORS_PREFIX_HEADERS_MAX: usize = 2;
/// Characters in an origin or a header name.
pub(crate) const CORS_ITEM_CHARS_MAX: usize = 256;
/// The verbs that a rule can name.
pub(crate) const CORS_METHODS: [&str; 10] =
    ["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH", "TRACE", "CONNECT"];

/// The only version of analytics settings that tables have.
const ANALYTICS_VERSION: &str = "1.0";
const ROOT: &str = "StorageServiceProperties";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceProperties {
    pub logging: Logging,
    pub hour_metrics: Metrics,
    pub minute_metrics: Metrics,
    pub cors: Vec<CorsRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    pub read: bool,
    pub write: bool,
    pub delete: bool,
    pub retention: RetentionPolicy,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// `None` when off; otherwise whether calls are counted by operation (`IncludeAPIs`).
    pub include_apis: Option<bool>,
    pub retention: RetentionPolicy,
}

/// `None`, or days from 1 to 365, when enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionPolicy {
    pub days: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorsRule {
    pub allowed_origins: Vec<String>,
    pub allowed_methods: Vec<String>,
    pub max_age_seconds: u32,
    pub exposed_headers: Vec<String>,
    pub allowed_headers: Vec<String>,
}

/// The elements that a client sent; those it left out keep their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePropertiesUpdate {
    pub logging: Option<Logging>,
    pub hour_metrics: Option<Metrics>,
    pub minute_metrics: Option<Metrics>,
    pub cors: Option<Vec<CorsRule>>,
}

impl Default for ServiceProperties {
    /// The properties of a new account: hourly metrics for a week, the rest off.
    fn default() -> Self {
        Self {
            logging: Logging::default(),
            hour_metrics: Metrics {
                include_apis: Some(true),
                retention: RetentionPolicy { days: Some(7) },
            },
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
        }
    }
}

impl ServiceProperties {
    /// Writes the body of Get Service Properties.
    pub fn to_xml(&self) -> String {
        let mut out = [BYTE_ORDER_MARK, DECLARATION].concat();
        write_open(&mut out, ROOT);
        self.logging.write(&mut out);
        self.hour_metrics.write(&mut out, "HourMetrics");
        self.minute_metrics.write(&mut out, "MinuteMetrics");
        if self.cors.is_empty() {
            out.push_str("<Cors />");
        } else {
            write_open(&mut out, "Cors");
            self.cors.iter().for_each(|rule| rule.write(&mut out));
            write_close(&mut out, "Cors");
        }
        write_close(&mut out, ROOT);
        out
    }
}

impl ServicePropertiesUpdate {
    /// Reads the body of Set Service Properties. `Metrics`, the name in old versions, sets the
    /// hourly metrics.
    ///
    /// # Errors
    /// 400 `InvalidXmlDocument`, or `InvalidXmlNodeValue` for lists of a CORS rule that are too long.
    pub fn parse(body: &[u8]) -> Result<Self> {
        Self::parse_beside(&[], body)
    }

    /// Reads a document that may have other elements, which mean nothing.
    fn parse_beside(ignored: &[&str], body: &[u8]) -> Result<Self> {
        let root = document::parse(body)?;
        if root.name != ROOT {
            return Err(invalid("the root is not StorageServiceProperties"));
        }
        let text = text_of(body);
        if let Some(at) = behind_wrong_days(&root, text) {
            let place = line_and_position(text, at);
            return Err(fault_at(place, WRONG_DAYS));
        }
        let mut children = Children::of(&root)?;
        let metrics = [children.optional("HourMetrics")?, children.optional("Metrics")?];
        if metrics.iter().all(Option::is_some) {
            return Err(invalid("both HourMetrics and Metrics are present"));
        }
        let update = Self {
            logging: children.optional("Logging")?.map(Logging::parse).transpose()?,
            hour_metrics: metrics.into_iter().flatten().next().map(Metrics::parse).transpose()?,
            minute_metrics: children.optional("MinuteMetrics")?.map(Metrics::parse).transpose()?,
            cors: children.optional("Cors")?.map(parse_cors).transpose()?,
        };
        for name in ignored {
            children.optional(name)?.map(Element::leaf_text).transpose()?;
        }
        children.finish()?;
        Ok(update)
    }

    /// [`ServicePropertiesUpdate::parse`] for queues, which refuse a document that sets nothing; tables take it. Clients
    /// that also know blobs may send the default version of those, which queues do not have.
    ///
    /// # Errors
    /// As [`ServicePropertiesUpdate::parse`].
    pub fn parse_for_queues(body: &[u8]) -> Result<Self> {
        let update = Self::parse_beside(&["DefaultServiceVersion"], body)?;
        let text = text_of(body);
        // As recorded: the reader of the live service stumbles over a root without an end of its own.
        let is_cut_short = text.trim_end().ends_with("/>");
        if is_cut_short && update.sets_nothing() { Err(nothing_set(text)) } else { Ok(update) }
    }

    fn sets_nothing(&self) -> bool {
        let has_metrics = self.hour_metrics.is_some() || self.minute_metrics.is_some();
        self.logging.is_none() && self.cors.is_none() && !has_metrics
    }

    /// The properties after this update of `current`.
    pub fn apply(self, current: &ServiceProperties) -> ServiceProperties {
        ServiceProperties {
            logging: self.logging.unwrap_or_else(|| current.logging.clone()),
            hour_metrics: self.hour_metrics.unwrap_or_else(|| current.hour_metrics.clone()),
            minute_metrics: self.minute_metrics.unwrap_or_else(|| current.minute_metrics.clone()),
            cors: self.cors.unwrap_or_else(|| current.cors.clone()),
        }
    }
}

impl Logging {
    fn parse(element: &Element) -> Result<Self> {
        let mut children = Children::of(element)?;
        check_version(children.required("Version")?)?;
        let logging = Self {
            read: parse_bool(children.required("Read")?)?,
            write: parse_bool(children.required("Write")?)?,
            delete: parse_bool(children.required("Delete")?)?,
            retention: RetentionPolicy::parse(children.required("RetentionPolicy")?)?,
        };
        children.finish()?;
        Ok(logging)
    }

    fn write(&self, out: &mut String) {
        write_open(out, "Logging");
        write_leaf(out, "Version", ANALYTICS_VERSION);
        write_bool(out, "Read", self.read);
        write_bool(out, "Write", self.write);
        write_bool(out, "Delete", self.delete);
        self.retention.write(out);
        write_close(out, "Logging");
    }
}

impl Metrics {
    fn parse(element: &Element) -> Result<Self> {
        let mut children = Children::of(element)?;
        check_version(children.required("Version")?)?;
        let enabled = parse_bool(children.required("Enabled")?)?;
        let include_apis = children.optional("IncludeAPIs")?.map(parse_bool).transpose()?;
        if enabled && include_apis.is_none() {
            return Err(invalid("metrics are enabled without IncludeAPIs"));
        }
        let retention = RetentionPolicy::parse(children.required("RetentionPolicy")?)?;
        children.finish()?;
        Ok(Self { include_apis: include_apis.filter(|_| enabled), retention })
    }

    fn write(&self, out: &mut String, name: &str) {
        write_open(out, name);
        write_leaf(out, "Version", ANALYTICS_VERSION);
        write_bool(out, "Enabled", self.include_apis.is_some());
        if let Some(include_apis) = self.include_apis {
            write_bool(out, "IncludeAPIs", include_apis);
        }
        self.retention.write(out);
        write_close(out, name);
    }
}

impl RetentionPolicy {
    fn parse(element: &Element) -> Result<Self> {
        let mut children = Children::of(element)?;
        let enabled = parse_bool(children.required("Enabled")?)?;
        let days = children.optional("Days")?.map(parse_days).transpose()?;
        children.finish()?;
        if enabled && days.is_none() {
            return Err(invalid("retention is enabled without Days"));
        }
        Ok(Self { days: days.filter(|_| enabled) })
    }

    fn write(self, out: &mut String) {
        write_open(out, "RetentionPolicy");
        write_bool(out, "Enabled", self.days.is_some());
        if let Some(days) = self.days {
            write_leaf(out, "Days", itoa::Buffer::new().format(days));
        }
        write_close(out, "RetentionPolicy");
    }
}

fn parse_cors(element: &Element) -> Result<Vec<CorsRule>> {
    Children::of(element)?;
    if element.children.len() > CORS_RULES_MAX {
        return Err(invalid("there are more than 5 CORS rules"));
    }
    let rules = element.children.iter().map(CorsRule::parse).collect::<Result<_>>()?;
    let texts = element.children.iter().flat_map(|rule| &rule.children).map(|leaf| leaf.text.len());
    if texts.sum::<usize>() > CORS_BYTES_MAX {
        return Err(invalid("the CORS rules have more than 2 KiB"));
    }
    Ok(rules)
}

impl CorsRule {
    fn parse(element: &Element) -> Result<Self> {
        if element.name != "CorsRule" {
            return Err(invalid(format!("element is not known: name={}", element.name)));
        }
        let mut children = Children::of(element)?;
        let max_age = children.required("MaxAgeInSeconds")?.leaf_text()?.trim();
        let rule = Self {
            allowed_origins: parse_list(children.required("AllowedOrigins")?)?,
            allowed_methods: parse_list(children.required("AllowedMethods")?)?,
            max_age_seconds: parse_number(max_age)
                .filter(|age| *age <= i32::MAX.unsigned_abs())
                .ok_or_else(|| invalid("MaxAgeInSeconds is malformed"))?,
            exposed_headers: parse_list(children.required("ExposedHeaders")?)?,
            allowed_headers: parse_list(children.required("AllowedHeaders")?)?,
        };
        children.finish()?;
        if rule.allowed_origins.len() > CORS_ORIGINS_MAX {
            return Err(invalid_value("a rule has more than 64 origins"));
        }
        if rule.allowed_methods.iter().any(|method| !CORS_METHODS.contains(&method.as_str())) {
            return Err(invalid("a rule has an unknown method"));
        }
        check_headers(&rule.exposed_headers)?;
        check_headers(&rule.allowed_headers)?;
        Ok(rule)
    }

    fn write(&self, out: &mut String) {
        write_open(out, "CorsRule");
        write_list(out, "AllowedMethods", &self.allowed_methods);
        write_list(out, "AllowedOrigins", &self.allowed_origins);
        write_headers(out, "AllowedHeaders", &self.allowed_headers);
        write_headers(out, "ExposedHeaders", &self.exposed_headers);
        write_leaf(out, "MaxAgeInSeconds", itoa::Buffer::new().format(self.max_age_seconds));
        write_close(out, "CorsRule");
    }
}

/// Splits a comma list; spaces around items and empty items mean nothing.
fn parse_list(element: &Element) -> Result<Vec<String>> {
    let items = element.leaf_text()?.split(',').map(str::trim).filter(|item| !item.is_empty());
    let items: Vec<_> = items.map(str::to_owned).collect();
    if items.iter().any(|item| item.chars().count() > CORS_ITEM_CHARS_MAX) {
        return Err(invalid(format!(
            "an item has more than 256 characters: name={}",
            element.name
        )));
    }
    Ok(items)
}

fn check_headers(names: &[String]) -> Result<()> {
    let prefixes = names.iter().filter(|name| name.ends_with('*')).count();
    if prefixes > CORS_PREFIX_HEADERS_MAX || names.len() - prefixes > CORS_LITERAL_HEADERS_MAX {
        return Err(invalid_value("a rule has more than 64 header names or 2 prefixes"));
    }
    Ok(())
}

/// 400 `InvalidXmlNodeValue`; the reason goes to the log.
fn invalid_value(reason: &'static str) -> StorageError {
    StorageError::new(ErrorCode::InvalidXmlNodeValue).caused_by(reason)
}

/// A list as the service gives it back.
fn write_list(out: &mut String, name: &str, items: &[String]) {
    match items {
        [] => out.extend(["<", name, " />"]),
        items => write_leaf(out, name, &items.join(",")),
    }
}

/// A list of headers: literal names come before prefixes.
fn write_headers(out: &mut String, name: &str, headers: &[String]) {
    let (prefixes, mut names): (Vec<_>, Vec<_>) =
        headers.iter().cloned().partition(|header| header.ends_with('*'));
    names.extend(prefixes);
    write_list(out, name, &names);
}

fn check_version(element: &Element) -> Result<()> {
    if element.leaf_text()?.trim() == ANALYTICS_VERSION {
        Ok(())
    } else {
        Err(invalid("Version is not 1.0"))
    }
}

/// Reads a truth value in any case: the Python SDK of the old generation writes `True` and `False`.
fn parse_bool(element: &Element) -> Result<bool> {
    let text = element.leaf_text()?.trim();
    if text.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err(invalid(format!("element is neither true nor false: name={}", element.name)))
    }
}

/// The text of a document that has been parsed.
fn text_of(body: &[u8]) -> &str {
    let text = std::str::from_utf8(body).unwrap_or_default();
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// A document without any settings.
fn nothing_set(text: &str) -> StorageError {
    let (line, position) = line_and_position(text, text.trim_end().len());
    let reason = format!(
        "Error parsing Xml content: 'None' is an invalid XmlNodeType. Line {line}, position {position}."
    );
    fault_at((line, position), reason)
}

/// Where the reader of the live service stands when it has read a number of days that is out of range: at the name
/// of the tag behind it.
fn behind_wrong_days(element: &Element, text: &str) -> Option<usize> {
    if element.name == "Days" && element.leaf_text().is_ok_and(|days| is_out_of_range(days.trim()))
    {
        let tag = text.get(element.end..).unwrap_or_default();
        return Some(element.end + tag.len() - tag.trim_start_matches(['<', '/']).len());
    }
    element.children.iter().find_map(|child| behind_wrong_days(child, text))
}

fn is_out_of_range(days: &str) -> bool {
    !days.is_empty() && allowed_days(days).is_none()
}

fn allowed_days(days: &str) -> Option<u16> {
    let days = parse_number(days).and_then(|days| u16::try_from(days).ok());
    days.filter(|days| (1..=RETENTION_DAYS_MAX).contains(days))
}

fn parse_days(element: &Element) -> Result<u16> {
    allowed_days(element.leaf_text()?.trim())
        .ok_or_else(|| invalid("Days is not a number from 1 to 365"))
}

/// Digits only: `str::parse` would take a plus sign.
fn parse_number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn write_bool(out: &mut String, name: &str, value: bool) {
    write_leaf(out, name, if value { "true" } else { "false" });
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::assert_invalid;
    use super::super::reader::tests::MALFORMED;
    use super::*;

    /// The recorded body in the reference, section 12.1.
    const DEFAULT: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>";

    fn parse(inner: &str) -> Result<ServicePropertiesUpdate> {
        let body = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
        ServicePropertiesUpdate::parse(body.as_bytes())
    }

    fn cors_rule(origins: &str, methods: &str, age: &str, exposed: &str, allowed: &str) -> String {
        format!(
            "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods><MaxAgeInSeconds>{age}</MaxAgeInSeconds><ExposedHeaders>{exposed}</ExposedHeaders><AllowedHeaders>{allowed}</AllowedHeaders></CorsRule>"
        )
    }

    fn parse_rule(rule: &str) -> Result<CorsRule> {
        Ok(parse(&format!("<Cors>{rule}</Cors>"))?.cors.unwrap().remove(0))
    }

    fn names(prefix: &str, count: usize, suffix: &str) -> String {
        (0..count).map(|n| format!("{prefix}{n}{suffix}")).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn the_default_is_the_recorded_one() {
        let properties = ServiceProperties::default();
        assert_eq!(properties.to_xml(), DEFAULT);
        let update = ServicePropertiesUpdate::parse(DEFAULT.as_bytes()).unwrap();
        let other = ServiceProperties { cors: vec![CorsRule::default()], ..properties.clone() };
        assert_eq!(update.apply(&other), properties);
    }

    #[test]
    fn the_default_version_of_blobs_means_nothing_to_queues() {
        let body = |inner: &str| {
            format!("<StorageServiceProperties>{inner}</StorageServiceProperties>").into_bytes()
        };
        for version in [
            "<DefaultServiceVersion>2011-08-18</DefaultServiceVersion>",
            "<DefaultServiceVersion/>",
        ] {
            let update =
                ServicePropertiesUpdate::parse_for_queues(&body(&format!("{version}<Cors/>")));
            let expected = ServicePropertiesUpdate { cors: Some(vec![]), ..Default::default() };
            assert_eq!(update.unwrap(), expected, "{version}");
            assert_invalid(
                ServicePropertiesUpdate::parse_for_queues(&body(&version.repeat(2))),
                version,
            );
            assert_invalid(parse(version), version);
        }
        let other = body("<StaticWebsite/><Cors/>");
        assert_invalid(ServicePropertiesUpdate::parse_for_queues(&other), "another element");
    }

    #[test]
    fn documents_that_are_not_well_formed_are_refused() {
        for body in MALFORMED {
            assert_invalid(ServicePropertiesUpdate::parse_for_queues(body.as_bytes()), body);
        }
        for body in [
            "<StorageServiceProperties a='b'c='d'><Cors/></StorageServiceProperties>",
            "&#32;<StorageServiceProperties><Cors/></StorageServiceProperties>",
            "<?xml version='1.0' encoding='utf-16'?><StorageServiceProperties><Cors/></StorageServiceProperties>",
        ] {
            assert_invalid(ServicePropertiesUpdate::parse_for_queues(body.as_bytes()), body);
        }
    }

    #[test]
    fn faults_have_the_places_that_were_recorded() {
        let told = |body: &str| {
            let error = ServicePropertiesUpdate::parse_for_queues(body.as_bytes()).unwrap_err();
            error.elements().map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
        };
        let nothing = "<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties />";
        let reason =
            "Error parsing Xml content: 'None' is an invalid XmlNodeType. Line 2, position 29.";
        assert_eq!(told(nothing), ["2", "29", reason]);
        let days = "<StorageServiceProperties>\n<Logging><Days>366</Days></Logging></StorageServiceProperties>";
        assert_eq!(told(days), ["2", "28", WRONG_DAYS]);
        // A number is what it says, however it is written.
        let written = "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>true</Write><RetentionPolicy><Enabled>true</Enabled><Days>&#53;</Days></RetentionPolicy></Logging></StorageServiceProperties>";
        assert!(ServicePropertiesUpdate::parse(written.as_bytes()).is_ok());
    }

    #[test]
    fn omitted_elements_keep_their_values() {
        let current = ServiceProperties { cors: vec![CorsRule::default()], ..Default::default() };
        for empty in ["", "  \n "] {
            assert_eq!(parse(empty).unwrap().apply(&current), current);
        }
        // The order of the Python SDK.
        let logging = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>false</Write><RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>";
        let changed = parse(logging).unwrap().apply(&current);
        assert_eq!(
            changed.logging,
            Logging {
                read: true,
                write: false,
                delete: true,
                retention: RetentionPolicy { days: Some(5) }
            }
        );
        assert_eq!(
            changed,
            ServiceProperties { logging: changed.logging.clone(), ..current.clone() }
        );
        assert_eq!(parse("<Cors />").unwrap().apply(&current).cors, []);
    }

    #[test]
    fn old_versions_have_one_metrics_element() {
        let metrics = "<Metrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Metrics>";
        let properties = parse(metrics).unwrap().apply(&ServiceProperties::default());
        assert_eq!(properties.hour_metrics, Metrics::default());
        let both = metrics.to_owned() + &metrics.replace("Metrics>", "HourMetrics>");
        assert_invalid(parse(&both), "both names");
    }

    #[test]
    fn retention_is_one_to_365_days() {
        let logging = |retention: &str| {
            parse(&format!(
                "<Logging><Version>1.0</Version><Delete>true</Delete><Read>true</Read><Write>false</Write><RetentionPolicy>{retention}</RetentionPolicy></Logging>"
            ))
        };
        for days in [1, 365] {
            let update = logging(&format!("<Enabled>true</Enabled><Days>{days}</Days>")).unwrap();
            assert_eq!(update.logging.unwrap().retention.days, Some(days));
        }
        for days in ["0", "366", "-1", "+1", "x", "", "99999999999"] {
            let update = logging(&format!("<Enabled>true</Enabled><Days>{days}</Days>"));
            assert_invalid(update, days);
        }
        assert_invalid(logging("<Enabled>true</Enabled>"), "days missing");
        assert_invalid(logging("<Days>1</Days>"), "enabled missing");
        let update = logging("<Enabled>false</Enabled><Days>3</Days>").unwrap();
        assert_eq!(update.logging.unwrap().retention.days, None);
    }

    #[test]
    fn truth_values_are_read_in_any_case() {
        // As azure-cosmosdb-table 1.0.6 writes them.
        let update = parse(
            "<MinuteMetrics><Version>1.0</Version><Enabled>True</Enabled><IncludeAPIs>False</IncludeAPIs><RetentionPolicy><Enabled>False</Enabled></RetentionPolicy></MinuteMetrics>",
        );
        assert!(update.is_ok());
    }

    #[test]
    fn present_elements_are_complete() {
        for inner in [
            "text",
            "<Other/>",
            "<Logging/>",
            "<Cors>x</Cors>",
            "<Cors><Other/></Cors>",
            "<Cors><CorsRule/></Cors>",
            "<Cors /><Cors />",
            "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>",
            "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled></HourMetrics>",
            "<HourMetrics><Version>2.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>",
            "<HourMetrics><Version>1.0</Version><Enabled>yes</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>",
        ] {
            assert_invalid(parse(inner), inner);
        }
        assert_invalid(ServicePropertiesUpdate::parse(b"<Other/>"), "root");
        assert_invalid(ServicePropertiesUpdate::parse(b""), "empty");
    }

    #[test]
    fn a_rule_round_trips() {
        let rule = parse_rule(&cors_rule(
            "http://a.com, https://*.b.com",
            "GET,PATCH,MERGE",
            "60",
            "x-ms-meta*",
            "",
        ))
        .unwrap();
        assert_eq!(rule.allowed_origins, ["http://a.com", "https://*.b.com"]);
        assert_eq!(rule.allowed_methods, ["GET", "PATCH", "MERGE"]);
        assert_eq!((rule.max_age_seconds, rule.allowed_headers.len()), (60, 0));
        let properties = ServiceProperties { cors: vec![rule], ..Default::default() };
        let update = ServicePropertiesUpdate::parse(properties.to_xml().as_bytes()).unwrap();
        assert_eq!(update.apply(&ServiceProperties::default()), properties);
    }

    /// Recorded: literal names first, and an empty list as an empty element.
    #[test]
    fn lists_are_given_back_as_the_service_does() {
        let rule = cors_rule("www.xyz.com", "GET", "0", "", "a*,b,c*,d");
        let cors = vec![parse_rule(&rule).unwrap()];
        let xml = ServiceProperties { cors, ..Default::default() }.to_xml();
        let expected = "<AllowedHeaders>b,d,a*,c*</AllowedHeaders><ExposedHeaders /><MaxAge";
        assert!(xml.contains(expected), "{xml}");
    }

    #[test]
    fn cors_limits() {
        let rule = cors_rule("*", "GET", "0", "", "");
        assert_eq!(
            parse(&format!("<Cors>{}</Cors>", rule.repeat(5))).unwrap().cors.unwrap().len(),
            5
        );
        assert_invalid(parse(&format!("<Cors>{}</Cors>", rule.repeat(6))), "six rules");

        let fits = [
            cors_rule(&names("http://o", 64, ""), "GET", "0", "", ""),
            cors_rule("*", "GET", "0", &names("h", 64, ""), &names("x", 64, "")),
            cors_rule("*", "GET", "0", "a*,b*", &format!("{},a*,b*", names("x", 64, ""))),
            cors_rule("*", "GET", "0", &"h".repeat(256), ""),
            cors_rule("*", "GET", "2147483647", "", ""),
            cors_rule("*", "TRACE,CONNECT", "0", "", ""),
            cors_rule("", "", "0", "", ""),
        ];
        for rule in fits {
            parse_rule(&rule).unwrap();
        }
        for (rule, what) in [
            (cors_rule(&names("o", 65, ""), "GET", "0", "", ""), "origins"),
            // Also of more than 2 KiB.
            (cors_rule(&names(&"o".repeat(100), 65, ""), "GET", "0", "", ""), "long origins"),
            (cors_rule("*", "GET", "0", &names("h", 65, ""), ""), "exposed headers"),
            (cors_rule("*", "GET", "0", "", &names("h", 65, "")), "allowed headers"),
            (cors_rule("*", "GET", "0", "", "a*,b*,c*"), "prefixes"),
            (cors_rule("*", "GET", "0", "a*,b*,c*", ""), "exposed prefixes"),
        ] {
            let error = parse_rule(&rule).unwrap_err();
            assert_eq!(
                (error.status(), error.code()),
                (400, ErrorCode::InvalidXmlNodeValue),
                "{what}"
            );
        }
        for (rule, what) in [
            (cors_rule("*", "GET", "0", &"h".repeat(257), ""), "long header"),
            (cors_rule(&"o".repeat(257), "GET", "0", "", ""), "long origin"),
            (cors_rule("*", "BREW", "0", "", ""), "method"),
            (cors_rule("*", "get", "0", "", ""), "lower-case method"),
            (cors_rule("*", "GET", "-1", "", ""), "negative age"),
            (cors_rule("*", "GET", "", "", ""), "no age"),
            (cors_rule("*", "GET", "2147483648", "", ""), "large age"),
        ] {
            assert_invalid(parse_rule(&rule), what);
        }
    }

    #[test]
    fn the_rules_together_have_two_kibibytes() {
        // Each item has 255 characters and a comma; the rest of the rule has 5 ("*", "GET", "0").
        let items = |last: usize| {
            format!("{}{}", format!("{},", "h".repeat(255)).repeat(7), "h".repeat(last))
        };
        let rule = |last| cors_rule("*", "GET", "0", &items(last), "");
        parse_rule(&rule(CORS_BYTES_MAX - 5 - 7 * 256)).unwrap();
        assert_invalid(parse_rule(&rule(CORS_BYTES_MAX - 4 - 7 * 256)), "2049 characters");
    }
}
