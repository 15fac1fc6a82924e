//! JSON: entities as they come and as they go.

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tavola_bench::entity::Keys;
use tavola_bench::micro::{entity_json, stored_entity};
use tavola_wire::table::json::{EntityFormat, read_entity};
use tavola_wire::table::negotiate::MetadataLevel;
use tavola_wire::table::stored::EntityRef;

fn reading(criterion: &mut Criterion) {
    let json = entity_json(Keys::default(), 7);
    let mut group = criterion.benchmark_group("json/read");
    group.throughput(Throughput::Bytes(json.len() as u64));
    group.bench_function("entity", |bencher| {
        bencher.iter(|| read_entity(black_box(&json)).expect("legal"));
    });
    group.finish();
}

fn writing(criterion: &mut Criterion) {
    let stored = stored_entity(Keys::default(), 7);
    let mut group = criterion.benchmark_group("json/write");
    for (name, level) in [
        ("none", MetadataLevel::None),
        ("minimal", MetadataLevel::Minimal),
        ("full", MetadataLevel::Full),
    ] {
        let base = "http://127.0.0.1:10002/devstoreaccount1";
        let format =
            EntityFormat::new(level, base, "devstoreaccount1", "bench", None).expect("legal");
        group.bench_function(name, |bencher| {
            let mut out = Vec::new();
            bencher.iter(|| {
                out.clear();
                let entity = EntityRef::parse(black_box(&stored)).expect("legal");
                format.push_item(&mut out, true, "p00007", "r0000000007", entity).expect("legal");
                out.len()
            });
        });
    }
    group.finish();
}

criterion_group! { name = benches; config = common::quick(); targets = reading, writing }
criterion_main!(benches);
