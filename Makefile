# SPDX-License-Identifier: Apache-2.0
# What can be done here; `make` alone prints this table. Everything runs from a clean clone without another step.
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup bench test lint conformance interoperability fidelity bench-core bench-analysis bench-conductor bench-late bench-resources coverage adaptive calibration alarms kills truth witness network asan ubsan tsan fresh nightly lock clean

python := .venv/bin/python
# SMOKE=1: the short form of a benchmark, which only shows that it works. SHORT=1: the short form of fresh.
smoke := $(if $(SMOKE),--smoke)
# ADAPTERS=all: also the packages of the middleware that the default set-up leaves out, and the study of them all.
rack := $(if $(filter all,$(ADAPTERS)),--rack --rust)
study := $(if $(rack),rack,quick)
# What crosses a network, beside tests/integration/network.
network_tests := hosts hosts_lacking time_services emulated_hosts devices capture bridges bridge_programs security security_bridges

help: ## this table
	@sed -n 's/^\([a-z -]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null || sed -n 's/:.*## /	/p' Makefile

setup: ## distribution packages, .venv, engine, adapters, the report's page (ADAPTERS=all: more middleware)
	@tools/setup $(rack)

bench: ## set-up, then studies/quick.yaml: a table here and out/quick/report.html (ADAPTERS=all: rack.yaml, out/rack)
	@tools/setup $(rack)
	@.venv/bin/lagometer run studies/$(study).yaml --out out/$(study)

test: ## set-up, then all tests: C++, Python, web
	@tools/setup --test
	@$(python) tools/run_tests.py

lint: ## format, types, layers, sizes: all checks that run no code
	@tools/setup --test --lint
	@tools/lint

conformance: ## every adapter through the conformance suite; rewrites the matrix of docs/adapters/matrix.md
	@tools/setup
	@.venv/bin/lagometer conformance --all --out out/conformance.json || [ $$? = 3 ]
	@.venv/bin/lagometer conformance cyclonedds --option shared_memory=true --out out/conformance-iceoryx.json || [ $$? = 3 ]
	@.venv/bin/lagometer conformance cyclonedds11 --option shared_memory=true --out out/conformance-psmx.json || [ $$? = 3 ]
	@.venv/bin/lagometer conformance iceoryx2 --option max_publishers=64 --option max_subscribers=64 --out out/conformance-iceoryx2.json || [ $$? = 3 ]
	@.venv/bin/lagometer conformance lcm --option receive_buffer_bytes=4194304 --out out/conformance-lcm.json || [ $$? = 3 ]
	@.venv/bin/lagometer conformance zenoh --option transport=shared-memory --out out/conformance-zenoh.json || [ $$? = 3 ]
	@$(python) tools/conformance_matrix.py out/conformance.json out/conformance-iceoryx.json out/conformance-psmx.json out/conformance-iceoryx2.json out/conformance-lcm.json out/conformance-zenoh.json

interoperability: ## every installed pair of middleware, with messages of ROS 2; rewrites docs/INTEROPERABILITY.md
	@$(python) tools/interoperability.py

fidelity: ## Cyclone DDS through our engine against the vendor's own ddsperf (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/fidelity.py $(smoke)

bench-core: ## what measuring costs, per message and per cell (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/core.py $(smoke)

coverage: ## whether 95 % intervals contain the truth, the stop included, on simulated cells (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/coverage.py $(smoke)

adaptive: ## adaptive cells against runs of 60 s, at most a fifteenth of their time (SMOKE=1: short)
	@tools/setup --test --rack
	@$(python) benchmarks/adaptive.py $(smoke)

calibration: ## a build against itself raises no alarm, and an injected +5 % is found (SMOKE=1: short)
	@tools/setup --test --rack
	@$(python) benchmarks/calibration.py $(smoke)

alarms: ## the whole rack with nothing wrong in it: findings raised, and none that is a false alarm (SMOKE=1: short)
	@tools/setup --test --rack --rust
	@$(python) benchmarks/alarms.py $(smoke)

kills: ## campaigns that are killed and resumed 200 times lose and repeat nothing (SMOKE=1: 10 times)
	@tools/setup --test
	@$(python) benchmarks/kills.py $(smoke)

truth: ## the bounds of one clock's offset to another hold, over 600 estimates with a known truth (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/truth.py $(smoke)

network: ## all emulated links and hosts, a real sshd, devices, captures, bridges, security; names what it skips; as root
	@tools/setup --test
	@LAGOMETER_LONG=1 $(python) -m pytest tests/integration/network $(network_tests:%=tests/integration/campaign/test_%.py)

witness: ## delays are found in their layer, and packets agree; rewrites docs/methodology/witness.md (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/witness.py $(smoke); first=$$?; $(python) benchmarks/packets.py $(smoke); second=$$?; \
	$(if $(SMOKE),,$(python) tools/witness_page.py out/bench/witness.json out/bench/packets.json &&) exit $$((first + second))

bench-conductor: ## what a trial costs the conductor, from 10 to 1,000 workers (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/conductor.py $(smoke)

bench-late: ## sends late because of lagometer, at 191 nodes, beside a bare sleep (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/late.py $(smoke)

bench-resources: ## what looking at threads, memory and counters costs, in pairs (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/resources.py $(smoke)

bench-analysis: ## a hundred million samples to a report, against pandas (SMOKE=1: short)
	@tools/setup --test
	@$(python) benchmarks/analysis.py $(smoke)

asan ubsan tsan: ## C++ tests and short trials of each adapter under a sanitizer
	@tools/setup --test --no-build
	@tools/sanitize $@

fresh: ## make bench and make test from a clean clone in a bare Debian root (SHORT=1: set-up and the tiny study)
	@tools/setup --fresh
	@tools/fresh $(if $(SHORT),--short)

nightly: ## all that is too long for .ci/run; one table and out/nightly.json (NIGHTLY="asan kills": those alone)
	@tools/nightly $(NIGHTLY)

lock: ## rewrites requirements/*.txt from pyproject.toml
	@tools/setup
	@tools/lock

clean: ## away with what was built; .venv and out/ stay
	rm -rf build web/dist lagometer/report/bundle .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
