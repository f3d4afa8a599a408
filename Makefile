# Everything runs from the repository's root. `make` is what you run before a
# commit; CI runs the same targets.

GOLANGCI_VERSION := v2.15.0
GOLANGCI         := bin/golangci-lint-$(GOLANGCI_VERSION)
GO_TOOLS         := bin/.tools
FUZZTIME         ?= 60s
BENCHTIME        ?= 1s
LOCAL            := github.com/mrsmesh/mrsmesh

# Our own Go files, without generated ones.
# A command that lists the Go files: their names together are too long for one of the shell.
GO_FILES = find . -name '*.go' -not -path './bin/*' -not -path './.git/*' -not -path '*/node_modules/*' \
	-not -name '*.pb.go' -not -name '*.gen.go'
# Tests behind the build tag e2e, and the packages that have some.
E2E_FILES    = $(shell grep -rlE --include='*_test.go' --exclude-dir=testdata '^//go:build .*\be2e\b' .)
E2E_PACKAGES = $(shell dirname $(E2E_FILES) | sort -u)
E2E_TESTS    = $(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $(E2E_FILES) | paste -sd'|' -)

.PHONY: all fmt fmt-check lint arch dead names cross dist changelog test race chaos hostile soak mutants bench bench-docs microbench fuzz fuzz-smoke e2e examples generate generate-check page page-check page-tools tools

all: fmt lint arch test

fmt: $(GO_TOOLS)
	@$(GO_FILES) | xargs bin/goimports -w -local $(LOCAL)
	@$(GO_FILES) | xargs bin/gofumpt -w

fmt-check: $(GO_TOOLS)
	@bad=$$($(GO_FILES) | xargs bin/goimports -l -local $(LOCAL); $(GO_FILES) | xargs bin/gofumpt -l); \
	if [ -n "$$bad" ]; then echo "not formatted (run make fmt):"; echo "$$bad" | sort -u; exit 1; fi

lint: $(GOLANGCI)
	@$(GOLANGCI) config verify
	@$(GOLANGCI) run ./...

arch: # at no cost where the tests have just run
	@go test ./internal/archtest

# Each supported system, without a C compiler: programs, packages and tests are
# type-checked. What runs where stands in the README's table of systems.
CROSS ?= linux/amd64 linux/arm64 darwin/arm64 freebsd/amd64 windows/amd64

cross:
	@go run ./internal/crosscheck $(CROSS)

# At a release, in a clone without changes: packages, archives, checksums, licences and bills of
# materials for each system, in dist/. The same commit gives the same bytes. The first time the
# tools that tools/dist/go.mod pins are downloaded.
dist:
	@go run ./internal/dist -o dist $(CROSS)

# At a release: VERSION=1.2.3 collects changes/*.md into CHANGELOG.md.
changelog:
	@tools/changelog.sh "$(VERSION)"

# Fails on code in pkg/ that no program reaches, outside of its two rooms for tests:
# pkg/papers, the oracles, and pkg/sim, the simulator.
dead: $(GO_TOOLS)
	@dead=$$(bin/deadcode -filter '^$(LOCAL)/pkg/' ./... | grep -vE '^pkg/(papers|sim)/'); \
	if [ -n "$$dead" ]; then echo "$$dead"; echo "no program reaches it: use it, delete it, or move it to pkg/papers"; exit 1; fi

# Lists the exported names that no other package uses; see internal/archtest.
names:
	@go test -count=1 ./internal/archtest -run 'TestNames$$' -v -names

test:
	@go test ./...

# pkg/ has no goroutine, which internal/archtest checks: nothing there can race by itself. The
# rooms left out only compute on it, or read the code, and take a third of the time. With -short
# documents are not walked, whose programs are not raced, and no scenario is played: the longest
# test, of loops that take turns in virtual time. As much of the time is spent waiting, three
# packages run side by side. What `go test ./...` and lint have vetted is not vetted once more.
UNRACED := archtest|config|crosscheck|dist|eval|figures|guides|hostile|jobfile|jobmap|mutants|play|sbatch|scenario|vectors

# Tests that take long in a single goroutine, or in programs that are not raced; and floods of a
# mesh in virtual time, under which the detector itself has crashed.
UNRACED_TESTS := TestConformance|TestAHistorysFileIsBounded|TestAJobMovesBetweenEngines|TestAMovedJobIsTheSame|TestAStateThatChangesALittleMovesALittle|TestASupervisorWithoutDescriptors|TestGuestIsDeterministic|TestPowerFails|TestJournalsAreShown|TestBoundsOfPages|TestAllTasksComePageByPage|TestAListWithoutAnEnd|TestUploadsAreBounded|TestRemoveTree|TestATreeIsFlattened|TestLargeDirectoryIsSplit|TestALongRunRecordDoesNotDelayEveryStart|TestAnXServer.*|TestScoresCutAFlood.*|TestEveryKindOfInvalidMessageCostsThePeerItsScore|TestOneSubmittersFloodIsCutAndPunishesNobody|TestABurstOfAnnouncementsReachesEverySite

race:
	@go test -race -short -vet=off -p 3 -timeout 20m -skip '^($(UNRACED_TESTS))$$' \
		$$(go list ./internal/... | grep -vE '/internal/($(UNRACED))$$')

# Real agents under troubles of all kinds, on Linux as root: 30 minutes; CHAOS=short three.
chaos:
	@go build -o bin/chaos ./internal/chaos && bin/chaos || { code=$$?; [ "$$code" = 3 ] || exit "$$code"; }

# All attacks of docs/threats.md and docs/protocol.md, and then each wall of
# internal/hostile/testdata/walls.txt removed in turn: its attack must break through. With
# HOSTILE=short only what jobs and local users do to this machine, and no wall is removed. With
# HOSTILE_AS root runs the tests as that user, who has control groups of its own, as a service with
# Delegate=yes has, with HOSTILE_DELEGATE=yes.
HOSTILE          ?=
HOSTILE_AS       ?=
HOSTILE_DELEGATE ?=

hostile:
	@go run ./internal/hostile $(if $(filter short,$(HOSTILE)),-short) -as "$(HOSTILE_AS)" \
		$(if $(filter yes,$(HOSTILE_DELEGATE)),-delegate)
	@$(if $(filter short,$(HOSTILE)),,go run ./internal/hostile -without all)

# SOAK_JOBS small jobs through one submitter among five real agents, 100,000 by default: an hour
# or more on two cores. Ends with 1 where something has grown, or has become slow.
soak:
	@go build -o bin/soak ./internal/soak && bin/soak

# How many small changes of the code the tests notice, MUTANTS of each package, drawn by SEED;
# some hours for all packages.
MUTANTS ?= 25
SEED    ?= 1
PACKAGES ?= ./pkg/... ./internal/...

mutants:
	@go run ./internal/mutants -n $(MUTANTS) -seed $(SEED) $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(PACKAGES))

# Some five minutes on two cores; BENCH_QUICK=1 under one. BENCH_JSON names a file
# for the figures.
bench:
	@go run ./internal/bench

# Writes the table of docs/performance.md from the file that BENCH_JSON names.
bench-docs:
	@BENCH_DOCS=docs/performance.md go run ./internal/bench

microbench:
	@go test -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) ./pkg/... ./internal/...

fuzz:
	@tools/fuzz.sh $(FUZZTIME)

fuzz-smoke:
	@tools/fuzz.sh 1s own

# The meshes of ./e2e keep real time and mostly wait, so that four are up at a time. What only
# computes comes afterwards, without the packages' other tests. Those of ./pkg/workload take larger
# samples with the tag. Lint, which has the tag, too, has vetted them.
e2e: WITHOUT = quickstart # which its own tests run
e2e: examples
	@go test -tags=e2e -vet=off -count=1 -parallel 4 -timeout 40m ./e2e
	@go test -tags=e2e -vet=off -count=1 -p 3 -timeout 20m -run '^($(E2E_TESTS))$$' $(filter-out ./e2e ./pkg/workload,$(E2E_PACKAGES))
	@go test -tags=e2e -vet=off -count=1 ./pkg/workload

examples:
	@for main in $(filter-out examples/$(strip $(WITHOUT))/%,$(wildcard examples/*/main.go)); do \
		echo "go run ./$$(dirname $$main)"; go run "./$$(dirname $$main)" || exit 1; \
	done

# Needs protoc (Debian: protobuf-compiler). Generated code is committed.
generate: $(GO_TOOLS)
	@for proto in $$(find pkg -name '*.proto'); do \
		PATH="$(CURDIR)/bin:$$PATH" protoc --go_out=. --go_opt=module=$(LOCAL) "$$proto" || exit 1; \
		bin/gofumpt -w "$${proto%.proto}.pb.go" || exit 1; \
	done
	@PATH="$(CURDIR)/bin:$$PATH" go generate ./...

# The compiler's version in a generated header may differ from machine to
# machine; nothing else may.
generate-check: generate
	@drift=$$(git -c safe.directory='$(CURDIR)' diff -I'^//.*protoc ' -- '*.pb.go' '*.gen.go'); \
	if [ -n "$$drift" ]; then echo "$$drift"; echo "generated code is out of date: run make generate and commit"; exit 1; fi

# The agent's page, from internal/api/web/page into internal/api/web/dist, which is committed: who
# does not change the page needs no node. `make page` needs node 20.19 or newer, and npm.
PAGE := internal/api/web/page

page: page-tools
	@cd $(PAGE) && npm run -s fmt && npm run -s build

# Builds it into a folder of its own and compares.
page-check: page-tools
	@cd $(PAGE) && npm run -s check && PAGE_OUT=node_modules/.dist npm run -s build && \
	diff -r node_modules/.dist ../dist && echo "the page fits its sources"

# What builds and checks the page, by package-lock.json, into a folder that git ignores.
page-tools: $(PAGE)/node_modules/.package-lock.json

$(PAGE)/node_modules/.package-lock.json: $(PAGE)/package-lock.json
	@cd $(PAGE) && npm ci --no-fund --no-audit --loglevel=error >/dev/null
	@touch $@

tools: $(GO_TOOLS) $(GOLANGCI)

$(GO_TOOLS): tools/go.mod
	@mkdir -p bin
	@cd tools && GOBIN="$(CURDIR)/bin" go install tool
	@touch $@

$(GOLANGCI):
	@mkdir -p bin
	@GOBIN="$(CURDIR)/bin" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv bin/golangci-lint $@
