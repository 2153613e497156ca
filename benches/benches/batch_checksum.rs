//! Verifying a batch as it comes in, stamping and slicing it as it goes out.

mod util;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pawl_wire::batch::{Stamp, slice_batch, verify_batch};

fn checksums(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("batch");
    for count in [1, 1000] {
        let bytes = util::batch(count);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(format!("verify {count} x 1,000 bytes"), |bencher| {
            bencher.iter(|| verify_batch(black_box(&bytes)).expect("it is valid"));
        });
        let stamp = Stamp {
            partition_id: 0,
            base_offset: 7,
            base_timestamp: 9,
        };
        let verified = verify_batch(&bytes).expect("it is valid");
        group.bench_function(format!("stamp {count} x 1,000 bytes"), |bencher| {
            bencher.iter(|| black_box(&verified).stamped(black_box(stamp)));
        });
    }
    let bytes = util::batch(1000);
    let header = *verify_batch(&bytes).expect("it is valid").header();
    group.throughput(Throughput::Elements(1));
    group.bench_function("slice the second half of 1,000", |bencher| {
        bencher.iter(|| slice_batch(black_box(&bytes), &header, 500..1000).expect("it is valid"));
    });
    group.finish();
}

criterion_group!(benches, checksums);
criterion_main!(benches);
