//! Transactions: taking the body of a hundred inserts apart.

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tavola_bench::entity::Keys;
use tavola_bench::micro::entity_json;
use tavola_wire::table::batch::{BatchRequest, Part};
use tavola_wire::table::json::read_entity;

const ROWS: u64 = 100;

fn parsing(criterion: &mut Criterion) {
    let body = body();
    let content_type = "multipart/mixed; boundary=batch_t";
    let mut group = criterion.benchmark_group("batch");
    group.throughput(Throughput::Elements(ROWS));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| BatchRequest::parse(content_type, black_box(&body)).expect("legal"));
    });
    group.bench_function("parse with URLs and entities", |bencher| {
        bencher.iter(|| {
            let batch = BatchRequest::parse(content_type, black_box(&body)).expect("legal");
            let [Part::Changeset(changeset)] = &batch.parts[..] else { unreachable!("it has one") };
            for operation in &changeset.operations {
                black_box(operation.resource("devstoreaccount1").expect("legal"));
                black_box(read_entity(operation.body).expect("legal"));
            }
        });
    });
    group.finish();
}

fn body() -> Vec<u8> {
    let mut body =
        b"--batch_t\r\nContent-Type: multipart/mixed; boundary=changeset_t\r\n\r\n".to_vec();
    for row in 0..ROWS {
        body.extend_from_slice(b"--changeset_t\r\nContent-Type: application/http\r\n");
        body.extend_from_slice(b"Content-Transfer-Encoding: binary\r\n\r\n");
        body.extend_from_slice(b"POST http://127.0.0.1:10002/devstoreaccount1/bench HTTP/1.1\r\n");
        body.extend_from_slice(
            b"Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n",
        );
        body.extend_from_slice(&entity_json(Keys::default(), row));
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--changeset_t--\r\n--batch_t--\r\n");
    body
}

criterion_group! { name = benches; config = common::quick(); targets = parsing }
criterion_main!(benches);
