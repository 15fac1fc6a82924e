//! URLs: the account, the resource and the query of a request.

mod common;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tavola_wire::table::ResourcePath;
use tavola_wire::uri::{Address, AddressRules, QueryString};

const HOST: &str = "127.0.0.1:10002";
const ENTITY: &str = "/devstoreaccount1/bench(PartitionKey='p00007',RowKey='r0000000007')";
const ENCODED: &str =
    "/devstoreaccount1/bench(PartitionKey=%27a%20b%27%27c%27,RowKey=%27%C3%A4%27)";
const QUERY: &str = "$filter=PartitionKey%20eq%20%27p00007%27%20and%20Bucket%20eq%207&$select=Price,Amount&$top=100";

fn paths(criterion: &mut Criterion) {
    for (name, path) in [("entity", ENTITY), ("encoded entity", ENCODED)] {
        criterion.bench_function(&format!("url/path of an {name}"), |bencher| {
            bencher.iter(|| {
                let address =
                    Address::parse(HOST, black_box(path), AddressRules::default()).expect("legal");
                black_box(
                    ResourcePath::parse(address.resource_path, address.account).expect("legal"),
                );
            });
        });
    }
    criterion.bench_function("url/query", |bencher| {
        bencher.iter(|| QueryString::parse(black_box(QUERY)).expect("legal"));
    });
}

criterion_group! { name = benches; config = common::quick(); targets = paths }
criterion_main!(benches);
