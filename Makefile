# The linters come from the module mirror at the versions below, into .cache/bin;
# what the tests run for real comes from Debian, npm and the module mirror, at
# fixed versions, below .cache.

STATICCHECK := 0.8.1
GOFUMPT     := 0.12.0

SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

BIN      := $(CURDIR)/.cache/bin
AGENTS   := $(CURDIR)/.cache/agents
MCP      := $(CURDIR)/.cache/mcp
CODER    := $(CURDIR)/.cache/coder
GUEST    := $(CURDIR)/.cache/guest
AGENTAPI := $(CURDIR)/.cache/agentapi
RIVER    := $(CURDIR)/.cache/river
IPLD     := $(CURDIR)/.cache/ipld
POSTGRES := $(CURDIR)/.cache/postgres
LOG      := .cache/test.log
PKG      ?= ./...
SUITE    ?= agents cad coder hosts postgres
FUZZTIME ?= 10s
BENCH    ?= .

# How often make trials runs make test on a busy machine.
BUSY_ROUNDS ?= 5

.PHONY: release trials test test-outside build check lint agents mcp coder agentapi ipld postgres cad race golden fuzz bench bench-river clean need

# Packages whose tests run programs, or formats without a goroutine, more than
# goroutines of ours: the race detector makes them slower, not better. make race has
# them too.
PLAIN := /(drivers/(acp|builtin|cad|cell|coder|dag|git|policy|resource|tree)|e2e|engine/(audit|dag|diff|document|mapping|schema)|examples|rules|themes|ui/(command|diff|keymap|markdown|syntax))(/|$$)

# test runs every test of what is ours once, all but PLAIN under the race detector: it
# says first what the tests need, installs what is missing, and prints a line for each
# package with the seconds that it took, and at the end which took longest. A package
# that fails is shown whole. It takes up to 40 minutes on two cores. With SWARMDECK_CI=1
# a test that skips itself is a failure too. lint has vetted all, and one package more
# than there are cores runs at once, as some wait more than they work.
test: need lint ipld
	@mkdir -p $(dir $(LOG))
	@echo "go test $(PKG)"
	@all=$$(go list $(PKG) | grep -vE "/($$(.ci/outside packages | paste -sd '|'))$$" || true); \
		plain=$$(grep -E '$(PLAIN)' <<<"$$all" || true); raced=$$(grep -vE '$(PLAIN)' <<<"$$all" || true); \
		export CGO_ENABLED=1 SWARMDECK_IPLD=$(IPLD); \
		run() { [ -z "$$*" ] || go test $$flag -vet=off -p $$(($$(nproc) + 1)) -v -count=1 -timeout 80m -skip "$$(.ci/outside names)" $$* || printf "FAIL\tgo test $$flag\n"; }; \
		{ flag= run $$plain; flag=-race run $$raced; } 2>&1 | tee $(LOG) | awk -v of="$$(wc -l <<<"$$all")" -f .ci/report.awk

# test-outside runs the tests against what is not ours: make test-outside SUITE="coder cad".
# The suites are agents, cad, coder, hosts and postgres.
test-outside: need
	@mkdir -p .cache
	@.ci/outside run $(SUITE)

# build makes the program: static, stripped, without paths of this machine.
build:
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o swarmdeck .

# release makes what is handed out into dist: archives and Debian packages with
# completions and manual pages, and their sums. The same commit makes the same bytes.
release:
	.ci/release dist

# check is for before a commit, and takes up to three minutes on two cores once all
# is built: format, vet, lint, and the short forms of the tests that need Go alone,
# of the drivers only whether the tools are those that are listed.
check: lint
	go test -short ./app ./rules ./store/... ./engine/... ./ui/...
	go test -run 'Inventory|Agree' ./drivers/mcp
	@go test -count=1 -run OnlyShrinks -v ./rules | grep ' of '

lint: $(BIN)/gofumpt-$(GOFUMPT) $(BIN)/staticcheck-$(STATICCHECK)
	@echo "gofumpt -l ."
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs ls 2>/dev/null | xargs $(BIN)/gofumpt-$(GOFUMPT) -l); \
		if [ -n "$$bad" ]; then echo "not formatted by gofumpt:"; echo "$$bad"; exit 1; fi
	go vet ./...
	GOOS=darwin GOARCH=arm64 go vet .
	@echo "staticcheck ./..."
	@$(BIN)/staticcheck-$(STATICCHECK) ./...

# agents installs the agents that tests run for real.
agents:
	@.ci/agents $(AGENTS)

# coder builds the server that the suite coder runs against.
coder:
	@.ci/coder $(CODER)

# agentapi builds the server that the driver of Coder finds in a workspace.
agentapi:
	@.ci/agentapi/build $(AGENTAPI)

# ipld installs IPLD's own reader of archives.
ipld:
	@.ci/ipld $(IPLD)

# postgres installs a current PostgreSQL beside the system's.
postgres:
	@.ci/postgres $(POSTGRES)

# mcp installs the inspector and the servers of the Model Context Protocol that
# tests run for real.
mcp:
	@.ci/mcp $(MCP)

# cad installs FreeCAD, which the kernels of solids are compared on.
cad:
	@.ci/cad

# race looks for races alone, again and again: make race PKG=./engine/... COUNT=20
race: need
	CGO_ENABLED=1 go test -race -timeout 60m -count=$${COUNT:-3} $(PKG)

# trials runs the long forms of what test runs in short: cells and their engines
# killed at random, attacked also as root of a container, an engine killed a thousand
# times, two hundred at work on a repository and fifty beside a real Coder, all tests of
# trees with these on a host, a million tasks through a retention, every row forged, a
# long record searched, ten thousand answers by whoever may not, what clients are told
# through two hundred kills and through three hundred faults of engines on a database, a
# host's link cut a hundred times, hostile policy programs, the engine's suites on two
# versions of PostgreSQL, the example scripts on a database, fuzzing; cells in a machine
# of their own, where cgroups have all controllers; a release, made twice and tried in
# clean roots; and make test itself, twice in a row from a fresh clone while another
# program keeps the cores busy, BUSY_ROUNDS times. That takes five hours and more; the
# rest half an hour.
trials: need agents coder agentapi postgres
	.ci/guest $(GUEST)
	.ci/release-trial
	CELL_SETTINGS=all CELL_TRIALS=1000 go test -count=1 -timeout 60m -run 'KilledAtRandom|InEverySetting' -v ./drivers/cell
	CELL_SETTINGS=all go test -count=1 -timeout 30m -run HostileRun -v ./e2e
	RETENTION_TASKS=1000000 go test -count=1 -timeout 60m -run StopsGrowing -v ./engine/swarm
	SWARMDECK_CRASH_ROUNDS=1000 go test -count=1 -timeout 60m -run KilledAtAnyInstant -v ./engine/swarm
	SWARMDECK_CODER_KILLS=50 SWARMDECK_CODER=$(CODER)/real.test SWARMDECK_AGENTAPI=$(AGENTAPI)/agentapi \
		go test -count=1 -timeout 60m -run KillsAtAnyInstant -v ./drivers/coder
	POOL_POINTS=200 go test -count=1 -timeout 60m -run KilledAtAnyInstant -v ./drivers/cad/pool
	FORGED_ROWS=0 go test -count=1 -timeout 60m -run EveryCommand -v ./ui/command
	COMMAND_LINES=0 go test -count=1 -timeout 60m -run NoCommandLine -v ./drivers/acp
	SEARCH_EVENTS=50000 go test -count=1 -timeout 30m -run SearchFinds ./engine/dag
	ANSWER_TRIALS=10000 go test -count=1 -timeout 60m -run NoAnswerIsGiven -v ./e2e
	SWARMDECK_ENGINE_SUITES='./engine/... ./ui/command' SWARMDECK_POSTGRES_CURRENT=$(POSTGRES) go test -count=1 -timeout 60m -run OnADatabase -v ./store/postgres
	SWARMDECK_LINEAR_KILLS=200 SWARMDECK_LINEAR_FAULTS=300 go test -count=1 -timeout 120m -run FitsOneOrder -v ./e2e
	SWARMDECK_STORY_SIZES=all SWARMDECK_AGENTS=$(AGENTS) go test -count=1 -timeout 30m -run FourRealAgents -v ./e2e
	SWARMDECK_DATABASE_SCRIPTS=all go test -count=1 -timeout 60m -run ScriptsPassOnADatabase -v ./e2e
	TREE_HOST=all go test -count=1 -timeout 30m -run OnAHost -v ./drivers/tree
	SWARMDECK_TREE_KILLS=200 go test -count=1 -timeout 120m -run "HalfMerged|WholeOrNotAtAll" -v ./e2e
	SWARMDECK_HOST_CUTS=100 go test -count=1 -timeout 60m -run GivenOnceHowever -v ./e2e
	POLICY_ROUNDS=20 go test -count=1 -timeout 60m ./drivers/policy
	$(MAKE) race COUNT=1
	$(MAKE) fuzz FUZZTIME=30s PKG="./drivers/egress ./engine/egress ./drivers/cell/pin/named ./engine/secret"
	.ci/busy $(BUSY_ROUNDS) $(PKG)

# golden writes the golden screens anew: read the difference before a commit.
golden:
	go test ./ui/... -update
	git --no-pager diff --stat -- '*testdata*'

# fuzz gives each fuzz test a short round: make fuzz FUZZTIME=5m PKG=./ui
fuzz:
	@for pkg in $$(go list $(PKG)); do \
		for name in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$name"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# bench prints each benchmark's ratio beside its time: make bench PKG=./engine/swarm BENCH=Life
bench:
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m $(PKG)

# bench-river prints what a task's life on a PostgreSQL server costs beside a job's of
# River on the same, by turns: three minutes.
bench-river:
	@.ci/river/build $(RIVER)
	SWARMDECK_RIVER=$(RIVER)/river go test -run '^$$' -bench BesideRiver -benchtime 1x -timeout 60m ./engine/swarm

clean:
	rm -rf .cache dist swarmdeck
	go clean -testcache

$(BIN)/gofumpt-$(GOFUMPT):
	@mkdir -p $(BIN)
	GOBIN=$(BIN) go install mvdan.cc/gofumpt@v$(GOFUMPT)
	@mv $(BIN)/gofumpt $@

$(BIN)/staticcheck-$(STATICCHECK):
	@mkdir -p $(BIN)
	GOBIN=$(BIN) go install honnef.co/go/tools/cmd/staticcheck@v$(STATICCHECK)
	@mv $(BIN)/staticcheck $@

# need says what the tests call besides Go, and installs what is missing on Debian
# and as root; elsewhere it only names it.
need:
	@.ci/need
