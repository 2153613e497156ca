//! The client table's admission, and apply of sends.

mod util;

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pawl_vsr::{Judgement, Machine};
use pawl_wire::entry::EntryKind;

/// As many clients as a cluster keeps.
const CLIENTS: u32 = 8192;

fn admission(criterion: &mut Criterion) {
    let log = util::Log::new(CLIENTS);
    let mut group = criterion.benchmark_group("admission, 8,192 clients");
    let fresh = log.request(EntryKind::CreateStream, CLIENTS / 2, 1, b"body");
    assert_eq!(log.machine.judge(&fresh), Judgement::Propose);
    group.bench_function("a fresh request", |bencher| {
        bencher.iter(|| log.machine.judge(black_box(&fresh)));
    });
    let mut fenced = fresh;
    fenced.epoch -= 1;
    assert!(matches!(log.machine.judge(&fenced), Judgement::Answer(_)));
    group.bench_function("a fenced request", |bencher| {
        bencher.iter(|| log.machine.judge(black_box(&fenced)));
    });
    let send = log.send(1);
    assert_eq!(log.machine.judge(&send), Judgement::Propose);
    group.bench_function("a send", |bencher| {
        bencher.iter(|| log.machine.judge(black_box(&send)));
    });
    group.finish();
}

fn apply(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("apply");
    group.throughput(Throughput::Elements(1));
    for clients in [1, CLIENTS] {
        let mut log = util::Log::new(clients);
        let send = log.send(1000);
        group.bench_function(format!("a send, {clients} clients"), |bencher| {
            bencher.iter(|| log.apply(black_box(send), &Bytes::new()));
        });
    }
    group.finish();
}

fn snapshot(criterion: &mut Criterion) {
    let log = util::Log::new(CLIENTS);
    let bytes = log.machine.snapshot();
    let mut group = criterion.benchmark_group("snapshot, 8,192 clients");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("write", |bencher| bencher.iter(|| log.machine.snapshot()));
    group.finish();
}

criterion_group!(benches, admission, apply, snapshot);
criterion_main!(benches);
