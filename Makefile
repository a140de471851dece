# Everything a contributor does, by name. `make` alone lists it.
.DEFAULT_GOAL := help
.PHONY: help test check bench fuzz deny clean

# How long each fuzz target runs.
FUZZ_SECONDS ?= 60

help: ## Lists the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

test: ## Installs what is missing, starts private servers, runs every test
	@scripts/test

check: ## Formatting and lints, as strict as the continuous integration
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

bench: ## Builds and runs every benchmark in bench/
	@set -e; for manifest in bench/*/Cargo.toml; do \
		[ -e "$$manifest" ] || { echo "bench/ has no benchmarks"; break; }; \
		echo "== $${manifest%/Cargo.toml}"; \
		cargo run --release --manifest-path "$$manifest"; \
	done

fuzz: ## Runs every fuzz target for FUZZ_SECONDS (nightly Rust, cargo-fuzz)
	@cargo +nightly fuzz --version >/dev/null || { \
		echo "Needs: rustup toolchain install nightly && cargo install cargo-fuzz"; exit 1; }
	@set -e; for target in $$(cargo +nightly fuzz list); do \
		echo "== $$target"; \
		cargo +nightly fuzz run "$$target" -- -max_total_time=$(FUZZ_SECONDS) -timeout=1 -rss_limit_mb=512; \
	done

deny: ## Licences, banned crates and sources of all dependencies (cargo-deny)
	@cargo deny --version >/dev/null 2>&1 || { \
		echo "Needs: cargo install cargo-deny --version 0.20.2 --locked"; exit 1; }
	cargo deny --workspace check licenses bans sources

clean: ## Removes everything that was built
	cargo clean
