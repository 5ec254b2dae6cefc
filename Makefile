# The most used commands. They install what is missing.

PYTHON := build/venv/bin/python
SO := build/librealtime.so

.PHONY: help demo test check-long build lint format autobahn fuzz \
	simulate sanitize coverage soak bench wheel check-interop abi install clean \
	sse-contract-service hops hostile random-calls serve serve-meteor

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## C, Python and Swift programs receive the same messages, chat, and share a list
	@Tests/Support/install --demo
	cmake -S . -B build -G Ninja
	cmake --build build --target realtime demo_examples
	$(PYTHON) Tests/Support/demo.py

serve-meteor: install ## A Meteor server for the examples of docs/meteor.md, on PORT=3000
	@$(PYTHON) Tests/Support/todos_server.py --port $(or $(PORT),3000)

serve: install ## A server to try the library against, on PORT=8080, until Ctrl-C
	@$(PYTHON) bindings/python/src/librealtime/demo_server.py --port $(or $(PORT),8080)

test: install ## All tests except the long ones, with a result for each suite
	cmake -S . -B build -G Ninja
	cmake --build build --target all simulate
	Tests/run

check-long: install ## What `make test` leaves out: valgrind, many seeds, long random calls
	cmake -S . -B build -G Ninja
	cmake --build build --target all simulate
	Tests/run --long

build: install ## build/librealtime.so and build/bin/realtime, release
	cmake -S . -B build -G Ninja
	cmake --build build

lint: install ## swift format, ruff, mypy
	Tests/lint

format: ## Formats Swift and Python sources in place
	swift format --in-place --parallel --recursive \
	  Sources Tests Benchmarks examples-swift/Sources Package.swift
	build/venv/bin/ruff format bindings/python Tests Benchmarks

abi: ## Regenerates the header, the options and the bindings' tables
	swift run abigen

autobahn: build ## All 517 cases of the Autobahn test suite, in C and in Python
	$(PYTHON) Tests/Integration/autobahn --face c
	$(PYTHON) Tests/Integration/autobahn --face python

hops: build ## Spreadbot while its legs are cut; SEEDS=n FROM=m, five seconds each
	$(PYTHON) -m pytest -q -n 2 Tests/Integration/spreadbot_nchan_tests.py \
		--seeds $(or $(SEEDS),20) --from $(or $(FROM),1)

hostile: build ## All attacks of Tests/Hostile in their long form, 15 minutes; ONLY=word for some
	$(PYTHON) Tests/Hostile/run --long $(if $(ONLY),--only $(ONLY))

sse-contract-service: build ## Event sources driven over HTTP on PORT, for a contract-test harness
	$(PYTHON) Tests/Support/sse-contract-service $(or $(PORT),8000)

fuzz: install ## Runs libFuzzer on every parser, SECONDS_EACH=30
	Tests/Fuzz/run $${SECONDS_EACH:-30}

simulate: install ## Simulates faults: SEED=n with a trace, or SEEDS=n FROM=m (SCENARIO=name)
	cmake -S . -B build -G Ninja
	cmake --build build --target simulate
	build/bin/simulate $(if $(SCENARIO),--scenario $(SCENARIO)) \
		$(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),2000) --from $(or $(FROM),1))

bench: build ## Compares librealtime with its peers, half an hour; writes RESULTS.md; ROWS=names
	Tests/Support/install --bench
	$(PYTHON) Benchmarks/run $(if $(ROWS),--rows $(ROWS))

sanitize: install ## Address and thread sanitizer (KIND=address|thread), 10 minutes
	$(PYTHON) Tests/Sanitize/run $(if $(KIND),--kind $(KIND)) --seconds $(or $(SECONDS_EACH),20)

random-calls: build ## Random calls of the whole C interface, SECONDS=600; SEED=n repeats a run
	RANDOM_CALLS_SECONDS=$(or $(SECONDS),600) $(if $(SEED),RANDOM_CALLS_SEED=$(SEED)) \
		$(PYTHON) -m pytest -q -s Tests/CTests -k random_calls

coverage: install ## Line coverage of each target, 15 minutes; none may be below 85 %
	Tests/Coverage/run

soak: build ## 10,000 connections for MINUTES (default 3): messages, drops, churn; nothing may grow
	$(PYTHON) Tests/Soak/run $(or $(MINUTES),3)

check-interop: build ## Other projects' servers and proxies (apt, pip); ONLY=word
	Tests/Interop/install
	$(PYTHON) -m pytest -q -r s Tests/Interop $(if $(ONLY),-k '$(ONLY)')

wheel: build ## dist/*.whl with the library inside
	$(PYTHON) bindings/python/build_wheel $(SO)

install: ## Installs what is missing (apt, pip)
	@Tests/Support/install

clean:
	rm -rf build .build*
