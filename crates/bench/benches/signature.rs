//! Signatures: reading the header, and checking what it says.

mod common;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tavola_bench::target::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use tavola_wire::auth::AccountKey;
use tavola_wire::auth::shared_key::{Authorization, Scheme, SignedRequest, check_date};
use tavola_wire::ticks::Ticks;

const DATE: &str = "Thu, 03 Sep 2020 18:50:45 GMT";

fn shared_key(criterion: &mut Criterion) {
    let keys = [AccountKey::from_base64(DEVELOPMENT_KEY).expect("the published key")];
    let request = SignedRequest {
        verb: "GET",
        content_md5: "",
        content_type: "",
        date: DATE,
        account: DEVELOPMENT_ACCOUNT,
        raw_path: "/devstoreaccount1/bench(PartitionKey='p00007',RowKey='r0000000007')",
        comp: None,
    };
    let header = request.sign(Scheme::SharedKey, &keys[0]);
    let now = Ticks::parse_iso("2020-09-03T18:51:00Z").expect("legal");
    criterion.bench_function("signature/check", |bencher| {
        bencher.iter(|| {
            let authorization = Authorization::parse(black_box(&header)).expect("legal");
            let Authorization::SharedKey { scheme, signature, .. } = authorization else {
                unreachable!("it is")
            };
            check_date(request.date, now).expect("near");
            request.verify(scheme, &signature, &keys).expect("signed");
        });
    });
    criterion.bench_function("signature/make", |bencher| {
        bencher.iter(|| black_box(&request).sign(Scheme::SharedKey, &keys[0]));
    });
}

criterion_group! { name = benches; config = common::quick(); targets = shared_key }
criterion_main!(benches);
