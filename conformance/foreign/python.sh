#!/usr/bin/env bash
# The published Python package of the Iggy client and its own test suite against a fresh node.
#
#   conformance/foreign/python.sh [FILE...]      all files of the suite, or those named
#
# A virtual environment is made under target/foreign (kept for the next run), the package and the
# source distribution that holds its test suite come from the package index, and a node is started
# with a data directory of its own: on the default ports, which some tests expect, or on free ones
# where something listens on 8090 or 3000 already. Passed and failed are printed by file.
#
# Needs python3 with venv, the package index, and cargo unless PAWL_BINARY names a node. No file of
# the suite is part of this repository.
#
# Exit codes: 0 the files of the streams, the topics and the messages pass whole (the rest is counted
# and may fail), 1 one of them does not, or the node ended or panicked, 3 it could not be set up.
set -eu

version=0.9.0.dev5
required="test_stream test_topic test_message"
cd "$(dirname "$0")/../.."
work=${CARGO_TARGET_DIR:-target}/foreign/python
mkdir -p "$work"
work=$(cd "$work" && pwd)
run=$(mktemp -d)
node=""

finish() {
    if [ -n "$node" ]; then
        kill -KILL "$node" 2>/dev/null || true
        wait "$node" 2>/dev/null || true
    fi
    rm -rf "$run"
}
trap finish EXIT

give_up() {
    printf 'python.sh: %s\n' "$1" >&2
    exit 3
}

# The package, what its suite needs, and the suite.
prepare() {
    if [ ! -x "$work/venv/bin/pytest" ]; then
        rm -rf "$work/venv"
        python3 -m venv "$work/venv" || return 1
        "$work/venv/bin/pip" install --quiet "apache-iggy[testing,testing-docker]==$version" ||
            return 1
    fi
    if [ ! -f "$work/suite/foreign/python/tests/conftest.py" ]; then
        rm -rf "$work/suite" "$work/sdist"
        # pip asks a source distribution for its metadata with the build tool that it names.
        "$work/venv/bin/pip" download --quiet --no-deps --no-binary apache-iggy \
            --dest "$work/sdist" "apache-iggy==$version" || return 1
        mkdir -p "$work/suite"
        tar -xzf "$work"/sdist/*.tar.gz -C "$work/suite" --strip-components 1 || return 1
    fi
} >"$work/prepare.log" 2>&1

build() {
    if [ -n "${PAWL_BINARY:-}" ]; then
        binary=$PAWL_BINARY
        return
    fi
    cargo build --quiet --release --package pawl --bin pawl || return 1
    binary=${CARGO_TARGET_DIR:-target}/release/pawl
}

# Whether somebody listens on a port of this machine.
in_use() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Starts the node and sets tcp_port once its runtime file is there.
start_node() {
    local runtime=$run/data/runtime/current_config.toml left=6000 tcp=8090 http=3000
    if in_use "$tcp" || in_use "$http"; then
        tcp=0 http=0
    fi
    mkdir -p "$run/data"
    env -u IGGY_CONFIG_PATH \
        IGGY_SYSTEM_PATH="$run/data" \
        IGGY_TCP_ADDRESS="127.0.0.1:$tcp" IGGY_HTTP_ADDRESS="127.0.0.1:$http" \
        IGGY_QUIC_ENABLED=false IGGY_WEBSOCKET_ENABLED=false \
        IGGY_ROOT_USERNAME=iggy IGGY_ROOT_PASSWORD=iggy \
        "$binary" >"$run/node.log" 2>&1 &
    node=$!
    while [ ! -f "$runtime" ]; do
        kill -0 "$node" 2>/dev/null || { cat "$run/node.log" >&2; give_up "the node ended"; }
        left=$((left - 1))
        [ "$left" -gt 0 ] || give_up "the node is not ready after 60 s"
        sleep 0.01
    done
    tcp_port=$("$work/venv/bin/python" - "$runtime" <<'PYTHON'
import re, sys
section = ""
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("["):
        section = line.strip()
    found = re.match(r'address = "[^"]*:(\d+)"', line)
    if section == "[tcp]" and found:
        print(found.group(1))
PYTHON
)
}

# Runs one file of the suite; its results are written for the table.
run_file() {
    local name
    name=$(basename "$1" .py)
    (
        cd "$work/suite/foreign/python"
        IGGY_SERVER_HOST=127.0.0.1 IGGY_SERVER_TCP_PORT=$tcp_port PYTHONDONTWRITEBYTECODE=1 \
            timeout 900 "$work/venv/bin/pytest" -c "$work/suite/pyproject.toml" --rootdir . \
            -p no:cacheprovider --quiet --junit-xml "$run/results/$name.xml" "tests/$name.py"
    ) >"$run/results/$name.log" 2>&1 || true
    cp "$run/results/$name.log" "$work/last-$name.log"
}

# Prints the table and the names of what failed; fails when a required file does not pass whole.
print_table() {
    "$work/venv/bin/python" - "$run/results" "$work" $required <<'PYTHON'
import glob, os, sys
import xml.etree.ElementTree as tree

results, work, required = sys.argv[1], sys.argv[2], tuple(sys.argv[3:])
total, broken, failures = [0, 0, 0], False, []
print(f"{'file':32} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
for log in sorted(glob.glob(os.path.join(results, "*.log"))):
    name = os.path.basename(log)[:-4]
    counts, seconds = [0, 0, 0], 0.0
    report = os.path.join(results, name + ".xml")
    if os.path.exists(report):
        for case in tree.parse(report).iter("testcase"):
            seconds += float(case.get("time", "0"))
            kinds = {child.tag for child in case}
            kind = 1 if kinds & {"failure", "error"} else 2 if "skipped" in kinds else 0
            counts[kind] += 1
            if kind == 1:
                failures.append(f"{name}.py: {case.get('classname')}::{case.get('name')}")
    else:
        counts[1] = 1
        failures.append(f"{name}.py: the run of this file ended without results")
    must = name.startswith(required)
    if must and (counts[1] or counts[2] or not counts[0]):
        broken = True
    mark = " (must pass whole)" if must else ""
    print(f"{name + '.py':32} {counts[0]:7} {counts[1]:7} {counts[2]:8} {seconds:8.1f}{mark}")
    total = [sum(pair) for pair in zip(total, counts)]
for failure in failures:
    print("failed:", failure)
if failures:
    print(f"what pytest said is in {work}/last-*.log")
print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
sys.exit(1 if broken else 0)
PYTHON
}

prepare || { cat "$work/prepare.log" >&2; give_up "the package could not be installed"; }
build || give_up "the node could not be built"
start_node
mkdir -p "$run/results"
if [ "$#" -gt 0 ]; then
    files=("$@")
else
    files=("$work"/suite/foreign/python/tests/test_*.py)
fi
printf 'apache-iggy %s against %s, port %s\n' "$version" "$binary" "$tcp_port"
for file in "${files[@]}"; do
    run_file "$file"
done
code=0
print_table || code=1
if ! kill -0 "$node" 2>/dev/null; then
    echo "the node ended by itself; the end of its log:"
    tail -n 20 "$run/node.log"
    code=1
fi
if grep -n "panicked at" "$run/node.log"; then
    echo "the node panicked"
    code=1
fi
exit "$code"
