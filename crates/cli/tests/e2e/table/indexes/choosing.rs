//! Which way a query takes, and that it never takes much longer than without indexes: counted in rows, not in time.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{build, explained, explanation, index, insert_all};
use crate::server::admin::{figure, metrics};
use crate::support::client::{row_keys, values};
use crate::support::{Client, Launch, shared_client};

/// 3,000 entities in three partitions. `Rare` has a thousand values, `Common` has one in nine rows of ten, `Number` counts.
fn table(client: &Client) -> String {
    let table = client.new_table();
    let all: Vec<Value> = (0..3000)
        .map(|number: usize| {
            json!({
                "PartitionKey": format!("p{}", number / 1000),
                "RowKey": format!("{number:04}"),
                "Rare": number % 1000,
                "Number": number,
                "Group": number / 500,
                "Even": number.is_multiple_of(2),
                "Common": if number.is_multiple_of(10) { "rest" } else { "most" },
            })
        })
        .collect();
    insert_all(client, &table, &all);
    table
}

fn shown(client: &Client, table: &str, options: &[(&str, &str)]) -> String {
    explanation(&explained(client, table, options))
}

#[test]
fn few_matches_are_looked_up() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    let ask = |filter: &str| shown(&client, &table, &[("$filter", filter)]);
    // Three types compare with the literal, so that three ranges are merged.
    assert_eq!(ask("Rare eq 7"), "index ByRare merged 3 3/3");
    assert_eq!(ask("Rare eq 7 or Rare eq 8"), "index ByRare merged 6 6/6");
    assert_eq!(ask("Rare ge 7 and Rare lt 9"), "index ByRare sorted 6 6/6");
    assert_eq!(ask("Rare eq 7 and Even eq false"), "index ByRare merged 3 3/3");
    assert_eq!(ask("Rare eq 7 and PartitionKey ge 'p1'"), "index ByRare merged 2 2/2");
    assert_eq!(ask("Rare eq 7 and Rare gt 8"), "index ByRare ordered 0 0/0");
    // A full key needs none, and neither does a filter that the keys alone decide.
    assert_eq!(ask("PartitionKey eq 'p0' and RowKey eq '0007' and Rare eq 7"), "point - - - 1/1");
    assert_eq!(ask("PartitionKey eq 'p0'"), "partition scan - - - 1000/1000");
}

#[test]
fn one_value_in_most_rows_is_scanned() {
    let client = shared_client();
    let table = table(&client);
    let filter = [("$filter", "Common eq 'most'")];
    let before = values(&explained(&client, &table, &filter));
    build(&client, &table, "ByCommon", &json!({ "Keys": "Common" }));
    let page = explained(&client, &table, &filter);
    assert_eq!(values(&page), before);
    let entries: u64 = page.header("x-tavola-index-entries").unwrap().parse().unwrap();
    assert!(entries <= 128, "{entries} index rows for what a scan finds sooner");
}

/// Entries of both would be the same, and to compare them says nothing.
#[test]
fn a_second_index_of_the_same_parts_makes_no_difference() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByCommon", &json!({ "Keys": "Common" }));
    build(
        &client,
        &table,
        "Again",
        &json!({ "Keys": "Common", "BrowseAs": format!("{table}Again") }),
    );
    build(&client, &table, "Local", &json!({ "Keys": "PartitionKey,Common" }));
    for filter in ["Common eq 'most'", "Common eq 'most' and Even eq true"] {
        let page = explained(&client, &table, &[("$filter", filter)]);
        assert_eq!(page.header("x-tavola-index-use"), Some("ordered"), "{filter}");
        let entries: u64 = page.header("x-tavola-index-entries").unwrap().parse().unwrap();
        assert!(entries <= 1000, "{entries} index rows for what a scan finds sooner");
    }
    let filter = "PartitionKey eq 'p1' and Common eq 'rest'";
    let local = shown(&client, &table, &[("$filter", filter)]);
    assert!(local.starts_with("index Local ordered "), "{local}");
}

/// Half of the entities have the one value and half the other, in runs as long as what is read at a time, and none has both.
#[test]
fn two_indexes_with_nothing_in_common_are_given_up() {
    let client = shared_client();
    let table = client.new_table();
    let all: Vec<Value> = (0..8000)
        .map(|number: usize| {
            let (one, other) = if (number / 64).is_multiple_of(2) { ("x", "y") } else { ("y", "x") };
            json!({"PartitionKey": "p", "RowKey": format!("{number:04}"), "One": one, "Other": other})
        })
        .collect();
    insert_all(&client, &table, &all);
    build(&client, &table, "ByOne", &json!({ "Keys": "One" }));
    build(&client, &table, "ByOther", &json!({ "Keys": "Other" }));
    let filter = [("$filter", "One eq 'x' and Other eq 'x'")];
    let page = explained(&client, &table, &filter);
    assert_eq!(values(&page), Vec::<Value>::new());
    let number = |header: &str| page.header(header).unwrap().parse::<u64>().unwrap();
    let (entries, examined) = (number("x-tavola-index-entries"), number("x-tavola-rows-examined"));
    assert!(entries < 5000, "{entries} index rows, and {examined} rows");
    assert!(examined > 4000, "{examined} rows examined: the indexes went on");
}

/// As many rows as a page is worth are passed, and one more is too many: of 3,000 entities and three on a page, 94.
#[test]
fn a_range_at_the_edge_of_what_it_is_worth() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByNumber", &json!({ "Keys": "Number" }));
    let ask = |rows: usize| {
        let filter = format!("Number ge 1000 and Number lt {}", 1000 + rows);
        let page = explained(&client, &table, &[("$filter", &filter), ("$top", "3")]);
        assert_eq!(row_keys(&values(&page)), ["1000", "1001", "1002"]);
        explanation(&page)
    };
    assert_eq!(ask(94), "index ByNumber sorted 94 3/4");
    assert!(ask(95).starts_with("table scan - - - 3/"), "{}", ask(95));
    // What is known now is no reason for the narrower one.
    assert_eq!(ask(94), "index ByNumber sorted 94 3/4");
}

/// Branches whose rows are in no order are picked out of all ranges together, and an entity of two of them comes once.
#[test]
fn branches_of_different_indexes_are_passed_together() {
    let server = Arc::new(Launch::new().args(["--admin-port", "0"]).start());
    let client = Client::new(&server);
    let table = table(&client);
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare,Common", "Include": "*" }));
    build(&client, &table, "ByNumber", &json!({ "Keys": "Number" }));
    let ask = |filter: &str| shown(&client, &table, &[("$filter", filter)]);
    assert_eq!(ask("Rare eq 7 or Number gt 2995"), "index ByRare,ByNumber sorted 7 7/7");
    assert_eq!(ask("Rare eq 7 or Number eq 8"), "index ByRare,ByNumber sorted 4 4/4");
    // One of them has both.
    assert_eq!(ask("Rare eq 7 or Number lt 9"), "index ByRare,ByNumber sorted 12 11/11");
    assert_eq!(
        ask("PartitionKey eq 'p0' and (Rare eq 7 or Number lt 9)"),
        "index ByRare,ByNumber sorted 10 9/9"
    );
    // Every branch has to have one.
    let without = ask("Rare eq 7 or Number gt 2995 or Even eq true");
    assert!(without.starts_with("table scan "), "{without}");
    for filter in ["Rare eq 7 or Number lt 9", "Rare lt 3 or Number lt 5 and Even eq true"] {
        let all = |hint: &str| {
            let options = [("$filter", filter), ("$top", "2")];
            let pages = client
                .pages(&table, &options, |request| request.header("x-tavola-index", hint).send());
            pages.iter().flat_map(values).collect::<Vec<_>>()
        };
        assert_eq!(all("ByAnother"), all("none"));
        let options = [("$filter", filter), ("$top", "2")];
        let pages = client.pages(&table, &options, crate::support::client::Request::send);
        assert_eq!(pages.iter().flat_map(values).collect::<Vec<_>>(), all("none"), "{filter}");
    }
    // Together they are too wide, and that is remembered of both.
    let passed = || figure::<u64>(&metrics(&server), "tavola_index_entries_examined_total");
    let options = [("$filter", "Rare lt 20 or Number gt 2900"), ("$top", "5")];
    for is_first in [true, false] {
        let before = passed();
        let page = explained(&client, &table, &options);
        assert_eq!(passed() > before, is_first, "{before} and {}", passed());
        let not_used = page.header("x-tavola-index-not-used");
        assert_eq!(not_used, Some("ByRare=too-wide, ByNumber=too-wide"));
        assert_eq!(row_keys(&values(&page)), ["0000", "0001", "0002", "0003", "0004"]);
    }
}

/// Not one that a scan took the place of; and a query of many pages is one.
#[test]
fn uses_are_queries_that_an_index_served() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByCommon", &json!({ "Keys": "Common" }));
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    let uses = |name: &str| index(&client, &table, name)["Uses"].as_str().map(str::to_owned);
    let pages = |filter: &str, top: &str| {
        let options = [("$filter", filter), ("$top", top)];
        client.pages(&table, &options, crate::support::client::Request::send).len()
    };
    assert!(pages("Common eq 'most' and Even eq false and Number gt 2990", "1000") == 1);
    assert_eq!(uses("ByCommon").as_deref(), Some("0"));
    assert!(pages("Rare ge 7 and Rare lt 9", "2") >= 3);
    assert_eq!(uses("ByRare").as_deref(), Some("1"));
    assert!(pages("Common eq 'rest' and Rare eq 10", "1000") == 1);
    assert_eq!(uses("ByRare").as_deref(), Some("2"));
    // What is read to compare before many ranges are begun, of which few have anything, does not count.
    let sparse: Vec<_> = (998..1038).map(|number| format!("Rare eq {number}")).collect();
    assert!(pages(&sparse.join(" or "), "1000") == 1);
    assert_eq!(uses("ByRare").as_deref(), Some("3"));
    // A short range of keys is read before any index is thought of.
    let keys = "PartitionKey eq 'p0' and RowKey ge '0001' and RowKey lt '0020' and Rare eq 7";
    assert_eq!(shown(&client, &table, &[("$filter", keys)]), "range - - - 1/19");
    assert_eq!(uses("ByRare").as_deref(), Some("3"));
}

/// The log says what explain does.
#[test]
fn the_log_of_slow_queries_tells_why_indexes_are_not_used() {
    let server = Arc::new(Launch::new().args(["--slow-query-ms", "0"]).start());
    let client = Client::new(&server);
    let table = table(&client);
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    build(&client, &table, "Partly", &json!({ "Keys": "Rare", "Filter": "Even eq true" }));
    client.query(&table, &[("$filter", "not (Rare eq 7)")]).send().expect(200);
    let log = server.log();
    let line = log.lines().rfind(|line| line.contains("slow query")).expect("a line");
    assert!(line.contains("index_not_used=\"ByRare=skip-missing, Partly=skip-missing\""), "{line}");
}

#[test]
fn a_wide_range_is_scanned_and_remembered() {
    let server = Arc::new(Launch::new().args(["--admin-port", "0"]).start());
    let client = Client::new(&server);
    let table = table(&client);
    let passed = || figure::<u64>(&metrics(&server), "tavola_index_entries_examined_total");
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    let options = [("$filter", "Rare gt 10"), ("$top", "5")];
    // What a range costs that is given up is counted, and the second query does not find it out again.
    for is_first in [true, false] {
        let before = passed();
        let page = explained(&client, &table, &options);
        assert_eq!(passed() > before, is_first, "{before} and {}", passed());
        assert_eq!(page.header("x-tavola-index-not-used"), Some("ByRare=too-wide"));
        assert_eq!(row_keys(&values(&page)), ["0011", "0012", "0013", "0014", "0015"]);
    }
}

/// No entity matches, so that only the way through the keys tells what is sooner done.
#[test]
fn half_of_the_rows_are_scanned_though_none_matches() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByEven", &json!({ "Keys": "Even" }));
    let filter = [("$filter", "Even eq true and Common eq 'none'")];
    let page = explained(&client, &table, &filter);
    let entries: u64 = page.header("x-tavola-index-entries").unwrap().parse().unwrap();
    let examined: u64 = page.header("x-tavola-rows-examined").unwrap().parse().unwrap();
    assert!(examined > 2500, "{examined} rows examined: look-ups went on");
    assert!(entries < 1000, "{entries} index rows for what a scan finds sooner");
}

/// The first range is too wide, for one entity at least; others of the same shape are not.
#[test]
fn a_wide_range_says_nothing_of_narrow_ones() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    let ask =
        |filter: &str, top: &str| shown(&client, &table, &[("$filter", filter), ("$top", top)]);
    let narrow = "Rare ge 7 and Rare lt 9";
    for (filter, top) in [("Rare ge 0 and Rare lt 900", "1"), ("Rare ge 5 and Rare lt 40", "1")] {
        assert!(ask(filter, top).starts_with("table scan"), "{filter}");
        assert_eq!(ask(narrow, "1000"), "index ByRare sorted 6 6/6");
    }
    // The same range for a larger page, which may pass more of it.
    assert!(ask("Rare ge 5 and Rare lt 40", "1000").starts_with("index ByRare sorted 105 "));
}

#[test]
fn the_narrower_of_two_ranges_is_read() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByCommon", &json!({ "Keys": "Common" }));
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    for other in ["Common gt 'a'", "Common ne 'x'"] {
        let filter = format!("{other} and Rare ge 7 and Rare lt 9");
        assert_eq!(shown(&client, &table, &[("$filter", &filter)]), "index ByRare sorted 6 6/6");
    }
    // Of two with one bound each, the first is too wide.
    let filter = [("$filter", "Common gt 'a' and Rare gt 990")];
    let page = explained(&client, &table, &filter);
    let explained = explanation(&page);
    assert!(explained.starts_with("index ByRare sorted "), "{explained}");
    assert!(explained.ends_with(" 27/27"), "{explained}");
    assert_eq!(page.header("x-tavola-index-not-used"), Some("ByCommon=too-wide"));
}

/// That a scan is better is found out by reading little of the index, also where it has all that is asked.
#[test]
fn a_common_value_with_copies_is_scanned_where_nothing_matches() {
    let client = shared_client();
    let table = table(&client);
    let filter = [("$filter", "Common eq 'most' and Rare eq 5000")];
    build(&client, &table, "ByCommon", &json!({ "Keys": "Common", "Include": "*" }));
    let page = explained(&client, &table, &filter);
    assert_eq!(values(&page), Vec::<Value>::new());
    let entries: u64 = page.header("x-tavola-index-entries").unwrap().parse().unwrap();
    assert!(entries <= 400, "{entries} index rows beside a scan");
}

/// Many ranges are not even begun where a page is full before.
#[test]
fn many_ranges_of_common_values_are_scanned() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare", "Include": "*" }));
    let all: Vec<_> = (0..60).map(|number| format!("Rare eq {number}")).collect();
    let filter = all.join(" or ");
    let ask = |top: &str| shown(&client, &table, &[("$filter", &filter), ("$top", top)]);
    assert_eq!(ask("10"), "index ByRare merged covering 0 10/11");
    let all = ask("1000");
    assert!(all.starts_with("index ByRare merged covering 60 180/"), "{all}");
}

/// What a filter says about keys is no reason to read an index that says no more.
#[test]
fn an_index_of_a_partition_is_for_its_other_parts() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "Local", &json!({ "Keys": "PartitionKey,Rare" }));
    let ask = |filter: &str| shown(&client, &table, &[("$filter", filter)]);
    let other = "PartitionKey eq 'p1' and Number eq 1005";
    assert_eq!(ask(other), "partition scan - - - 1/1000");
    assert_eq!(ask("PartitionKey eq 'p1' and Rare eq 5"), "index Local merged 1 1/1");
    build(&client, &table, "MyNumber", &json!({ "Keys": "Number,Even" }));
    assert_eq!(ask(other), "index MyNumber sorted 1 1/1");
    build(&client, &table, "Rows", &json!({ "Keys": "RowKey,Rare" }));
    assert_eq!(ask("RowKey eq '1005' and Common eq 'most'"), "index Rows sorted 1 1/1");
}

/// Both have one value for each row, and both are in no order; the names are in the order that they should not be read in.
#[test]
fn of_two_values_the_rarer_one_is_read() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ACommon", &json!({ "Keys": "Common,Number" }));
    build(&client, &table, "BRare", &json!({ "Keys": "Rare,Number" }));
    let filter = "Common eq 'rest' and Rare eq 10";
    assert_eq!(shown(&client, &table, &[("$filter", filter)]), "index BRare sorted 3 3/3");
}

/// Entities that lie close together are sooner scanned than looked up, and no further than there are any.
#[test]
fn ranges_in_no_order_are_scanned_where_their_rows_lie_close_together() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByGroup", &json!({ "Keys": "Group", "Filter": "Even eq true" }));
    let filter = "Group ge 1 and Group lt 5 and Even eq true and Rare eq 5000";
    let page = explained(&client, &table, &[("$filter", filter)]);
    assert_eq!(values(&page), Vec::<Value>::new());
    assert_eq!(page.header("x-tavola-index-use"), Some("sorted partial"));
    let examined: u64 = page.header("x-tavola-rows-examined").unwrap().parse().unwrap();
    assert!((1800..2500).contains(&examined), "{examined}: every second of 2,000 rows is one");
}

#[test]
fn a_hint_wins() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    build(&client, &table, "ByCommon", &json!({ "Keys": "Common" }));
    let ask = |filter: &str, hint: &str| {
        let request = client.query(&table, &[("$filter", filter)]);
        let request = request.header("x-tavola-explain", "true").header("x-tavola-index", hint);
        explanation(&request.send().expect(200))
    };
    let filter = "Rare eq 7 and Common eq 'most'";
    assert_eq!(ask(filter, "none"), "table scan - - - 3/3000");
    assert_eq!(ask(filter, "ByRare"), "index ByRare merged 3 3/3");
    assert!(ask(filter, "ByCommon").starts_with("index ByCommon ordered 2700 "));
    assert_eq!(ask(filter, "NoSuchIndex"), "table scan - - - 3/3000");
}

#[test]
fn two_indexes_are_intersected_or_merged() {
    let client = shared_client();
    let table = client.new_table();
    let all: Vec<Value> = (0..2000)
        .map(|number: usize| {
            json!({
                "PartitionKey": "p",
                "RowKey": format!("{number:04}"),
                "Third": (number % 20).to_string(),
                "Fifth": (number % 21).to_string(),
            })
        })
        .collect();
    insert_all(&client, &table, &all);
    build(&client, &table, "ByThird", &json!({ "Keys": "Third" }));
    build(&client, &table, "ByFifth", &json!({ "Keys": "Fifth" }));
    let both = shown(&client, &table, &[("$filter", "Third eq '1' and Fifth eq '1'")]);
    assert!(both.starts_with("index ByFifth,ByThird intersected "), "{both}");
    assert!(both.ends_with(" 5/5"), "{both}");
    let either = shown(&client, &table, &[("$filter", "Third eq '1' or Fifth eq '1'")]);
    assert!(either.starts_with("index ByThird,ByFifth merged "), "{either}");
}

#[test]
fn reasons_are_told() {
    let client = shared_client();
    let table = table(&client);
    build(&client, &table, "ByRare", &json!({ "Keys": "Rare" }));
    build(&client, &table, "Partly", &json!({ "Keys": "Rare", "Filter": "Even eq true" }));
    let reasons = |filter: &str| {
        let page = explained(&client, &table, &[("$filter", filter)]);
        page.header("x-tavola-index-not-used").unwrap_or("-").to_owned()
    };
    assert_eq!(reasons("not (Rare eq 7)"), "ByRare=skip-missing, Partly=skip-missing");
    assert_eq!(reasons("Rare eq 7"), "Partly=partial");
    assert_eq!(reasons("Rare eq 7 and Even eq true"), "-");
    let many: Vec<_> = (0..300).map(|number| format!("Rare eq {number}")).collect();
    assert_eq!(reasons(&many.join(" or ")), "ByRare=too-many-streams, Partly=partial");
    assert_eq!(reasons("Common eq 'most'"), "-");
}
