//! The region of a log batch: everything of it but the bodies.

mod util;

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pawl_store::Outcome;
use pawl_store::format::LogPosition;
use pawl_store::format::batch::{BatchFrame, BatchKind, Region, WriteRecord, encode_region};
use pawl_vsr::Record;
use pawl_wire::ids::Op;

const NONCE: u64 = 7;

fn encode(criterion: &mut Criterion) {
    let frame = BatchFrame {
        cluster: 1,
        nonce: NONCE,
        at: LogPosition::ORIGIN,
        vouched: 0,
        outcomes_op: Op(0),
        kind: BatchKind::Records,
    };
    let log = util::Log::new(1);
    let body = Bytes::from(util::send_body(1));
    let mut header = log.send(1);
    header.set_body(&body);
    header.seal();
    let mut group = criterion.benchmark_group("log batch");
    for count in [1, 64] {
        let records: Vec<_> = (0..count)
            .map(|_| Record::Entry {
                header,
                body: body.clone(),
            })
            .collect();
        let outcomes: Vec<_> = (1..=count)
            .map(|op| Outcome {
                op: Op(op),
                base_offset: op,
            })
            .collect();
        group.throughput(Throughput::Elements(count));
        let mut out = BytesMut::new();
        group.bench_function(format!("encode {count} records"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let records: Vec<_> = records.iter().map(WriteRecord::new).collect();
                encode_region(black_box(&frame), &records, &outcomes, &mut out)
            });
        });
        let mut region = BytesMut::new();
        let records: Vec<_> = records.iter().map(WriteRecord::new).collect();
        encode_region(&frame, &records, &outcomes, &mut region);
        group.bench_function(format!("verify {count} records"), |bencher| {
            bencher.iter(|| Region::decode(black_box(&region), NONCE).expect("it is valid"));
        });
    }
    group.finish();
}

criterion_group!(benches, encode);
criterion_main!(benches);
