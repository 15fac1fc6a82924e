//! The stored form of an entity: writing it, reading it through, and merging into it.

mod common;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tavola_bench::entity::Keys;
use tavola_bench::micro::stored_entity;
use tavola_wire::table::json::read_entity;
use tavola_wire::table::stored::{EntityRef, EntityWriter, merge};

fn codec(criterion: &mut Criterion) {
    let stored = stored_entity(Keys::default(), 7);
    let changes = read_entity(br#"{"Quantity":5,"Revision":"1"}"#).expect("legal").entity;
    criterion.bench_function("entity/write", |bencher| {
        let entity = EntityRef::parse(&stored).expect("legal");
        let properties: Vec<_> =
            entity.properties().map(|property| property.expect("legal")).collect();
        bencher.iter(|| {
            let mut writer = EntityWriter::with_capacity(stored.len());
            for property in &properties {
                writer.push(property.name_str().expect("text"), property.value().expect("a value"));
            }
            writer.finish()
        });
    });
    criterion.bench_function("entity/read", |bencher| {
        bencher.iter(|| {
            let entity = EntityRef::parse(black_box(&stored)).expect("legal");
            entity
                .properties()
                .filter(|property| property.is_ok_and(|property| property.value().is_some()))
                .count()
        });
    });
    criterion.bench_function("entity/merge", |bencher| {
        bencher.iter(|| {
            let stored = EntityRef::parse(black_box(&stored)).expect("legal");
            merge(stored, EntityRef::parse(&changes).expect("legal")).expect("legal")
        });
    });
}

criterion_group! { name = benches; config = common::quick(); targets = codec }
criterion_main!(benches);
