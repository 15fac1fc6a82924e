//! Filters: reading and planning one, and asking it about stored rows.

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tavola_bench::entity::Keys;
use tavola_bench::micro::{stored_entity, stored_key};
use tavola_wire::table::filter::{Plan, Program, Scratch, parse};
use tavola_wire::table::stored::EntityRef;

const ROWS: u64 = 1000;
const FILTERS: [(&str, &str); 4] = [
    ("equality", "Bucket eq 7"),
    ("range", "Price gt 10000.0 and Price lt 20000.0 and Active eq true"),
    ("text", "Customer ge 'customer 0000000500' or Remark eq 'tea'"),
    ("missing", "Nothing eq 1 or Never eq 'x'"),
];

fn planning(criterion: &mut Criterion) {
    let range = "PartitionKey eq 'p00001' and RowKey ge 'r0000000001' and RowKey lt 'r0000000101'";
    for (name, text) in
        [("point", "PartitionKey eq 'p00001' and RowKey eq 'r0000000001'"), ("range", range)]
    {
        criterion.bench_function(&format!("filter/plan {name}"), |bencher| {
            bencher.iter(|| Plan::read(black_box(text)).expect("legal"));
        });
    }
}

fn evaluation(criterion: &mut Criterion) {
    let keys = Keys::default();
    let rows: Vec<_> =
        (0..ROWS).map(|number| (stored_key(keys, number), stored_entity(keys, number))).collect();
    let mut group = criterion.benchmark_group("filter/evaluate");
    group.throughput(Throughput::Elements(ROWS));
    for (name, text) in FILTERS {
        let program = Program::new(&parse(text).expect("legal"));
        group.bench_function(name, |bencher| {
            let mut scratch = Scratch::default();
            bencher.iter(|| {
                let matches = |(key, value): &(Vec<u8>, Vec<u8>), scratch: &mut Scratch| {
                    let entity = EntityRef::parse(value).expect("legal");
                    program.matches(key, entity, scratch).expect("legal")
                };
                rows.iter().filter(|row| matches(row, &mut scratch)).count()
            });
        });
    }
    group.finish();
}

criterion_group! { name = benches; config = common::quick(); targets = planning, evaluation }
criterion_main!(benches);
