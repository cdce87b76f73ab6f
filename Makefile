# One command per intent. `make help` lists them.

PYTHON ?= python3.11
VENV := .venv
PYTEST := $(VENV)/bin/python -m pytest
PACKAGES := memcached rsync rclone attr liberasurecode-dev gcc pkg-config wrk curl sqlite3 python3-venv chromium chromium-driver openssl prometheus iproute2 procps util-linux e2fsprogs haproxy lighttpd nginx-light libnginx-mod-stream rpm apt-utils gnupg s3cmd restic

# `make test` runs so many of its parts at a time, each grouped in the output (two on a quiet machine save some minutes; one
# is what time-outs of the tests were chosen for); by itself, a goal is run alone.
TEST_JOBS ?= 1
TEST_NEEDS := build keystone clients
TEST_PARTS := rust-begun black-box check rust conformance cors
# Compilers beside the black-box tests leave them the processors (make says BESIDE=yes to itself).
NICE := $(if $(BESIDE),nice -n 10)
# Not a client of make's job server: cargo and the tests look after themselves.
ALONE := env -u MAKEFLAGS -u MFLAGS
CARGO := $(ALONE) $(NICE) cargo
# Black-box tests wait half of their time: three at a time are what two processors bear.
WORKERS ?= 3
LINTS := cargo clippy --workspace --all-targets --locked -- -D warnings
SMOKE := tests/api/test_object.py tests/api/test_container.py tests/api/test_listing.py tests/commands/test_up.py tests/interop/test_takeover.py

.PHONY: help up build dist test quick black-box-all check deny advisories reproduce rust rust-begun black-box packages oracle conformance conformance-all cors keystone clients s3-operations s3-sdks other-stores beside-others probe mixed storm torture large-object flood log-volume race race-side-by-side race-degraded race-scalability race-s3 race-martlet race-upkeep race-foreground race-rings ring-histories simulate simulate-all fuzz allocations instructions bench-features bench-metrics deb clean pages apt-repository rpm static tarball tarball-glibc oci package-tests ansible-test advise-measure

help:            ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

up: build        ## build Martlet and start a whole cluster in ./martlet-data
	./target/release/martlet up

build:           ## the release build: compiles quickly, runs nearly as fast as `make dist`
	$(ALONE) cargo build --release --locked -p martlet

dist:            ## the build that is packaged and raced: compiles for long, runs fastest
	$(ALONE) packaging/reproducible.sh cargo build --profile dist --locked -p martlet

reproduce:       ## builds the program and the package twice, in different folders, and compares them; PROFILE=release is quicker
	packaging/reproduce.sh $(or $(PROFILE),dist)

# In a cold clone, what would make the next build of the tests quicker only costs time.
COLD := $(if $(wildcard target/debug/incremental),,CARGO_INCREMENTAL=$${CARGO_INCREMENTAL:-0})

test: packages   ## everything that must hold; what CI runs
	$(COLD) $(MAKE) --jobs=3 --output-sync=line $(TEST_NEEDS)
	$(COLD) $(MAKE) --jobs=$(TEST_JOBS) --output-sync=line BESIDE=$(filter-out 1,$(TEST_JOBS)) $(TEST_PARTS)

quick: $(VENV)/ready check   ## the inner loop: lints, unit tests, and a few black-box tests of the debug build
	cargo test --workspace --locked --lib --bins
	cargo build --locked -p martlet
	MARTLET_BIN=target/debug/martlet $(PYTEST) $(SMOKE) --sut up -n 2 --dist loadfile

check:           ## formatting, the rules of the tree (cargo xtask tidy), the lock file of the fuzz engine, lints
	$(CARGO) fmt --all --check
	$(CARGO) xtask tidy
	$(CARGO) fetch --locked --quiet --manifest-path crates/fuzz/engine/Cargo.toml --target "$$(rustc -vV | sed -n 's/^host: //p')"
	$(ALONE) $(NICE) $(LINTS)

deny:            ## licences, sources and bans of dependencies, by cargo-deny (`make check` has the essence of it)
	packaging/deny.sh licenses bans sources

advisories:      ## known weaknesses of dependencies; ADVISORIES=file:///a/clone for another copy of the RustSec database
	ADVISORIES=$(ADVISORIES) packaging/deny.sh advisories

# The processors are the black-box tests' as soon as they want them; `check` and `rust` wait for what is left, and say why it failed.
rust-begun:      ## begins to compile the unit tests and the lints, beside what is run meanwhile
	@mkdir -p target
	@$(ALONE) chrt --idle 0 sh -c 'cargo test --workspace --locked --no-run; $(LINTS)' > target/rust-begun.log 2>&1 &

rust: $(VENV)/ready   ## unit and property tests
	$(CARGO) test --workspace --locked --no-run
	MARTLET_ORACLE_PYTHON=$(CURDIR)/$(VENV)/bin/python MARTLET_SWIFT_PYTHON=$(CURDIR)/$(VENV)/bin/python \
	MARTLET_ORACLE_BIN=$(CURDIR)/$(VENV)/bin EVENTLET_NO_GREENDNS=yes $(ALONE) cargo xtask test

# Each test on one of two systems, and no test that is marked `extra`.
BLACK_BOX := --short
black-box: build keystone clients   ## Martlet from outside: clients, OpenStack Swift beside it, faults
	$(ALONE) $(PYTEST) tests/ $(BLACK_BOX) -n $(WORKERS) --dist loadfile --junitxml=target/black-box.xml

black-box-all: BLACK_BOX :=
black-box-all: black-box   ## … each test on both systems, and those for which `make test` has no time

oracle: $(VENV)/ready   ## the black-box tests against OpenStack Swift itself: proves the tests
	$(PYTEST) tests/ --sut openstack

conformance: $(VENV)/ready   ## OpenStack Swift's own functional tests; ARGS="test_slo.py -k nested" for a part
	@test -n "$$MARTLET_BIN" || $(MAKE) build
	MARTLET_TEST_PORTS=10000-10999 $(ALONE) $(VENV)/bin/python tests/conformance/run.py $(ARGS)

conformance-all: build $(VENV)/ready   ## … in every variant, and docs/reference/conformance.md is what they give
	$(VENV)/bin/python tests/conformance/run.py --variant all $(ARGS)

s3-operations: build $(VENV)/ready   ## every operation of S3 with every parameter, asked of both makes; writes docs/reference/s3-operations.md
	MARTLET_WRITE_S3_OPERATIONS=1 $(PYTEST) tests/clients/test_operations.py --sut up

s3-sdks: build clients   ## the AWS SDKs for Rust and for Go, with their defaults (needs go, compiles for minutes)
	$(ALONE) $(PYTEST) tests/clients/test_sdks.py --sut up -m "long or not long"

OTHER_STORES ?= rgw versitygw
other-stores: build clients   ## `martlet bench` on the S3 of Ceph's RGW (Debian's packages, unpacked) and Versity's gateway (built by Go); OTHER_STORES=rgw for one of them
	tests/harness/other_stores.sh target/other-stores $(OTHER_STORES)
	$(ALONE) $(PYTEST) tests/bench/test_other_stores.py -rs

beside-others: build $(VENV)/ready   ## what a request costs `martlet bench`, swift-bench and COSBench; ARGS="--cosbench FOLDER --rounds 5"
	$(VENV)/bin/python tests/bench/beside_others.py $(ARGS)

cors: $(VENV)/ready   ## OpenStack Swift's CORS tests in headless Chromium
	@test -n "$$MARTLET_BIN" || $(MAKE) build
	MARTLET_TEST_PORTS=11000-11999 $(ALONE) $(VENV)/bin/python tests/conformance/cors.py

probe: build $(VENV)/ready   ## OpenStack Swift's multi-server failure tests, with its programs, then with ours
	$(VENV)/bin/python tests/probe/run.py --make openstack $(ARGS); theirs=$$?; \
	$(VENV)/bin/python tests/probe/run.py --write $(ARGS) && exit $$theirs

pages: build $(VENV)/ready   ## what the pages for operators say is typed into machines of its own, word by word
	$(PYTEST) tests/operator/test_production_page.py tests/operator/test_migration_page.py -m "long or not long"

storm: build $(VENV)/ready   ## several nodes, faults from seeds; ARGS="--seeds 1-100 --record", "--seed 7 --only EIO"
	$(VENV)/bin/python tests/storm/run.py $(ARGS)

mixed: build $(VENV)/ready   ## every server and daemon of a mixed cluster exchanged under load, forth and back
	$(PYTEST) tests/interop/test_mixed_upkeep.py -m long -s

torture: build $(VENV)/ready   ## kill -9 under load, 200 times and more
	MARTLET_KILLS=$${MARTLET_KILLS:-220} $(PYTEST) tests/faults/test_kill.py --timeout=14400 -s

large-object: build $(VENV)/ready   ## an object of 5 GiB up and down, while memory stays
	$(PYTEST) tests/faults/test_memory.py -m "long or not long"

flood: build $(VENV)/ready   ## 20,000 idle connections and 4,000 slow clients beside ordinary ones; ARGS="--idle 1000 --slow 100"
	$(VENV)/bin/python tests/faults/flood.py $(ARGS)

advise-measure: build $(VENV)/ready   ## sixteen configurations of limited processes on this machine, predicted each from the others; three answers measured (9 minutes, root, a quiet machine)
	$(VENV)/bin/python tests/advise/measured.py --martlet target/release/martlet --output $(or $(OUTPUT),target/advise) $(ARGS)

log-volume: build $(VENV)/ready   ## lines and bytes that a cluster logs in an hour, beside OpenStack's; ARGS="--seconds 600"
	$(VENV)/bin/python tests/operator/log_volume.py $(ARGS)

race: dist       ## the three below; REPORTS=DIR keeps the report of `martlet bench` about each cell (half an hour)
	$(MAKE) --jobs=1 race-side-by-side race-degraded race-scalability

race-side-by-side: dist $(VENV)/ready   ## OpenStack Swift and Martlet side by side; writes the table of docs/performance.md
	MARTLET_BIN=target/dist/martlet $(VENV)/bin/python tests/race/race.py --write docs/performance.md $(if $(REPORTS),--reports $(REPORTS)/side-by-side) $(ARGS)

race-degraded: dist $(VENV)/ready   ## … with a node killed or hung, a drive lost, memcached flushed, upkeep; ARGS="--seconds 5 --faults hung"
	MARTLET_BIN=target/dist/martlet $(VENV)/bin/python tests/race/degraded.py --write docs/performance.md $(if $(REPORTS),--reports $(REPORTS)/degraded) $(ARGS)

race-scalability: dist $(VENV)/ready   ## … over one, two and three gateways in control groups (root); ARGS="--seconds 5 --share 0.2"
	MARTLET_BIN=target/dist/martlet $(VENV)/bin/python tests/race/scalability.py --write docs/performance.md $(if $(REPORTS),--reports $(REPORTS)/scalability) $(ARGS)

race-s3: dist $(VENV)/ready   ## the S3 API beside Swift's on one server; writes their table of docs/performance.md; ARGS="--seconds 3 --gib 0.25"
	MARTLET_BIN=target/dist/martlet $(VENV)/bin/python tests/race/s3.py --write docs/performance.md $(ARGS)

race-martlet: build $(VENV)/ready   ## Martlet's side alone, quickly, for profiling
	$(VENV)/bin/python tests/race/race.py --only martlet --seconds 5

race-upkeep: build $(VENV)/ready   ## the daemons that repair, over the same damage as OpenStack Swift's; ARGS="--races pendings"
	$(VENV)/bin/python tests/race/upkeep.py $(ARGS)

race-foreground: build $(VENV)/ready   ## what upkeep costs the requests beside it
	$(VENV)/bin/python tests/race/foreground.py $(ARGS)

race-rings: build $(VENV)/ready   ## rebalances of large rings; writes their table of docs/performance.md (OpenStack's takes minutes)
	$(VENV)/bin/python tests/race/rings.py --large --write docs/performance.md $(ARGS)

ring-histories: build $(VENV)/ready   ## 300 random histories of rings, with OpenStack's builder and with ours
	MARTLET_RING_HISTORIES=$(or $(HISTORIES),300) $(PYTEST) tests/operator/test_ring_histories.py --timeout=3600 -s

simulate:        ## clusters on one thread: SEEDS=100000 of them, from FIRST=1 on; or one SEED=17, step by step; OF=_of_databases
	MARTLET_SEEDS=$(or $(SEEDS),20000) MARTLET_FIRST_SEED=$(or $(FIRST),1) MARTLET_SEED=$(SEED) \
	cargo test --release -p simulation --locked --test seeds -- --nocapture no_promise$(OF)_is_broken

simulate-all:    ## all three kinds, until RUNS=1000000 have held together; goes on where it ended
	crates/simulation/run.sh $(or $(RUNS),1000000)

fuzz:            ## every parser of untrusted bytes, by coverage, SECONDS=60 each (docs/fuzzing.md)
	crates/fuzz/run.sh $(or $(SECONDS),60)

allocations: $(VENV)/ready   ## how often one request makes the whole of `martlet up` allocate
	$(CARGO) build -p martlet --features count-allocations --locked
	$(VENV)/bin/python tests/race/allocations.py target/debug/martlet

instructions: build $(VENV)/ready   ## … and how many instructions and system calls it costs; ARGS="BINARY" for another build beside it
	$(VENV)/bin/python tests/race/instructions.py $(ARGS) target/release/martlet

bench-features:  ## what a feature costs a request that does not use it
	cargo bench -p features --bench cost --locked

bench-metrics:   ## what counting for Prometheus costs a request
	cargo bench -p telemetry --bench counting --locked

deb: dist        ## a Debian package and its debug symbols in target/debian (docs/operating/installing.md)
	packaging/build-deb.sh target/dist/martlet target/debian

apt-repository:  ## … what target/debian holds, as a repository signed with KEY=address
	packaging/apt-repository.sh target/debian $(or $(KEY),$(error KEY=address names a secret key of gpg))

rpm: dist        ## an rpm package and its debug information in target/rpm
	packaging/build-rpm.sh target/dist/martlet target/rpm

# Statically linked, by the target of rustup that is made for it: `rustup target add`, and musl-gcc of Debian's musl-tools.
STATIC := $(shell uname -m)-unknown-linux-musl

static:
	@test -d "$$(rustc --print target-libdir --target $(STATIC))" && command -v musl-gcc > /dev/null || \
		{ echo "needed first: rustup target add $(STATIC), and musl-gcc (Debian: musl-tools)"; exit 1; }
	$(ALONE) packaging/reproducible.sh cargo build --profile dist --locked -p martlet --target $(STATIC)

tarball: static  ## a tarball that runs on every Linux, in target/tarball; `make tarball-glibc` is faster and needs a glibc
	packaging/build-tarball.sh target/$(STATIC)/dist/martlet target/tarball

tarball-glibc: dist
	packaging/build-tarball.sh target/dist/martlet target/tarball

oci: dist        ## an OCI image in target/oci, without a daemon; etc/compose.yaml starts it
	packaging/build-oci.py target/dist/martlet target/oci

# What the longer tests of the packages run: a runtime for containers, and tools from PyPI in an environment of their own.
PACKAGE_TEST_PACKAGES := podman crun containernetworking-plugins umoci

package-tests: build packages $(VENV)/ready .venv-packages/ready   ## the packages, and the image in podman
	@dpkg-query -W -f '$${Status}\n' $(PACKAGE_TEST_PACKAGES) 2> /dev/null | grep -c 'ok installed' | grep -qx $(words $(PACKAGE_TEST_PACKAGES)) || \
		DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(PACKAGE_TEST_PACKAGES)
	$(ALONE) $(PYTEST) tests/operator/test_package*.py -m "long or not long" --junitxml=target/package-tests.xml

# python3-apt: with it Ansible speaks to apt on the machines of the test, which are copies of this one.
ansible-test: build packages $(VENV)/ready .venv-ansible/ready   ## etc/ansible makes a cluster on machines of its own, changes it under load, grows it
	@dpkg-query -W -f '$${Status}\n' python3-apt 2> /dev/null | grep -qx 'install ok installed' || \
		DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3-apt
	$(ALONE) $(PYTEST) tests/operator/test_ansible*.py -m "long or not long"

.venv-ansible/ready: tests/requirements-ansible.txt
	$(PYTHON) -m venv .venv-ansible
	.venv-ansible/bin/pip install --quiet --disable-pip-version-check -r tests/requirements-ansible.txt
	touch $@

.venv-packages/ready: tests/requirements-packages.txt
	$(PYTHON) -m venv .venv-packages
	.venv-packages/bin/pip install --quiet --disable-pip-version-check -r tests/requirements-packages.txt
	touch $@

packages:        ## Debian packages the tests need, installed where root runs this
	@missing=$$(dpkg-query -W -f '$${Package} $${Status}\n' $(PACKAGES) 2>&1 | grep -v 'ok installed$$' | wc -l); \
	if [ "$$missing" -eq 0 ]; then exit 0; \
	elif [ "$$(id -u)" -eq 0 ]; then \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(PACKAGES); \
	else echo "not root: these must be installed: $(PACKAGES)"; fi

keystone: $(VENV)/ready   ## a Keystone for the tests, in a virtual environment of its own
	cd tests && $(ALONE) $(NICE) ../$(VENV)/bin/python -m harness.keystone --prepare

clients: $(VENV)/ready   ## the clients of S3 that the tests run, in a virtual environment of their own
	cd tests && $(ALONE) $(NICE) ../$(VENV)/bin/python -m harness.environment

$(VENV)/ready: tests/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	touch $@

clean:           ## remove what was built
	cargo clean
	rm -rf $(VENV) .venv-keystone .venv-clients .venv-packages .venv-ansible
