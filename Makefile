# Everything a contributor does, by name. `make` alone lists it.
.DEFAULT_GOAL := help
.PHONY: help test check apart bench fuzz deny advisories sbom clean

# How long each fuzz target runs.
FUZZ_SECONDS ?= 60
export FUZZ_TARGETS

help: ## Lists the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

test: ## Installs what is missing, starts private servers, runs every test
	@scripts/test

check: ## Formatting and lints, as strict as the continuous integration
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

apart: ## Checks that the fuzz targets and the benchmarks compile
	@scripts/check-apart

bench: ## Runs every benchmark in bench/, one after the other
	@set -e; for run in bench/*/run; do \
		echo "== $${run%/run}"; \
		"$$run"; \
	done

fuzz: ## Runs every fuzz target for FUZZ_SECONDS (cargo-fuzz)
	@cargo fuzz --version >/dev/null 2>&1 || { \
		echo "Needs: cargo install cargo-fuzz --version 0.13.2 --locked"; exit 1; }
	@set -e; \
	if cargo +nightly --version >/dev/null 2>&1; then toolchain=+nightly; \
	else toolchain=; export RUSTC_BOOTSTRAP=1; fi; \
	for target in $${FUZZ_TARGETS:-$$(cargo $$toolchain fuzz list)}; do \
		echo "== $$target"; \
		mkdir -p "fuzz/artifacts/found/$$target"; \
		cargo $$toolchain fuzz run --sanitizer none "$$target" \
			"fuzz/artifacts/found/$$target" "fuzz/corpus/$$target" -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=1 -rss_limit_mb=512; \
	done

deny: ## Licences, banned crates and sources of all dependencies (cargo-deny)
	@cargo deny --version >/dev/null 2>&1 || { \
		echo "Needs: cargo install cargo-deny --version 0.20.2 --locked"; exit 1; }
	cargo deny --workspace check licenses bans sources

advisories: ## Known holes, unmaintained and withdrawn crates (cargo-deny; fetches the database)
	@cargo deny --version >/dev/null 2>&1 || { \
		echo "Needs: cargo install cargo-deny --version 0.20.2 --locked"; exit 1; }
	cargo deny --workspace check advisories

sbom: ## Writes what the program is built of (cargo-cyclonedx)
	@scripts/sbom

clean: ## Removes everything that was built
	cargo clean
