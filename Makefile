# kvgate: build, run, test. `make help` lists the targets; V=1 shows the commands.

CC ?= gcc
PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= /lib/systemd/system

# ---- Debian packages, in one place ---------------------------------------------------------------
# libssl-dev: libmemcached.pc wants libcrypto.pc, and its package does not say so.
DEPS_BUILD := pkg-config libmicrohttpd-dev libmemcached-dev libssl-dev liblmdb-dev libinih-dev
# sasl2-bin makes the passwords of a memcached -S; libsasl2-modules has PLAIN.
DEPS_TEST := libcmocka-dev memcached curl strace python3 sasl2-bin libsasl2-modules nginx valgrind
DEPS_CLIENTS := python3 curl memcached perl libcurl4-openssl-dev php-cli php-curl default-jdk-headless nodejs golang-go
DEPS_LINT := clang clang-format clang-tidy
DEPS_BENCH := wrk memcached nginx libnginx-mod-http-memc libnginx-mod-http-echo webdis redis-server python3 \
    curl procps gnuplot-nox

# What the libraries are called for pkg-config.
LIBRARIES := libmicrohttpd libmemcached lmdb inih
LIBRARIES_TEST := cmocka

# ---- flags ---------------------------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
OPTIMIZE := -O2 -g
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -Iinclude $(WARNINGS) -fno-common -pthread

# Evaluated once, and only when something is compiled: `make deps` must work without pkg-config.
LIB_CFLAGS = $(eval LIB_CFLAGS := $$(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null))$(LIB_CFLAGS)
LIB_LIBS = $(eval LIB_LIBS := $$(shell pkg-config --libs $(LIBRARIES) 2>/dev/null))$(LIB_LIBS)

ifdef WERROR
BASE_CFLAGS += -Werror
endif

ifdef V
Q :=
say = @:
else
Q := @
say = @printf '  %-5s %s\n'
endif

B := build
S := build/sanitize

# ---- files ---------------------------------------------------------------------------------------
LIB_SRC := $(filter-out src/main.c,$(wildcard src/*.c))
KVSTALL_SRC := $(if $(wildcard src/kvstall/main.c),$(wildcard src/kvstall/*.c))
SUPPORT_SRC := $(wildcard tests/support/*.c)
CONTRACT_SRC := $(filter-out tests/store/test_%,$(wildcard tests/store/*.c))
TEST_SRC := $(wildcard tests/unit/test_*.c tests/store/test_*.c tests/http/test_*.c tests/stall/test_*.c \
    tests/net/test_*.c)
NET_SRC := $(filter-out tests/net/test_%,$(wildcard tests/net/*.c))
HEADERS := $(wildcard include/*.h)
ALL_C := $(wildcard src/*.c src/*/*.c tests/*/*.c)
ALL_H := $(HEADERS) $(wildcard src/*.h src/*/*.h tests/*/*.h)

LIB_OBJ := $(LIB_SRC:%.c=$B/obj/%.o)
SAN_LIB_OBJ := $(LIB_SRC:%.c=$S/obj/%.o)
SAN_KVSTALL_OBJ := $(filter-out %/main.o,$(KVSTALL_SRC:%.c=$S/obj/%.o))
SAN_SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$S/obj/%.o) $(CONTRACT_SRC:%.c=$S/obj/%.o)
TEST_BIN := $(TEST_SRC:tests/%.c=$S/tests/%)
PROGRAMS := $B/kvgate $(if $(KVSTALL_SRC),$B/kvstall)
SAN_PROGRAMS := $S/kvgate $(if $(KVSTALL_SRC),$S/kvstall)

.DEFAULT_GOAL := all
.PHONY: all run test accept-instructions chaos verdicts beside-big under-load test-clients deps-clients check bench bench-quick bench-scaling fuzz deps deps-build deps-lint deps-bench libs lint format install clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: libs ## build build/kvgate
	@$(MAKE) --no-print-directory $(PROGRAMS)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# ---- packages ------------------------------------------------------------------------------------
# $(call install_packages,NAMES): installs those that are missing; without apt it does nothing, and
# `libs` says what is not there.
define install_packages
@if command -v apt-get >/dev/null 2>&1; then \
    missing=; \
    for p in $(1); do \
        dpkg-query -W -f '$${db:Status-Status}' "$$p" 2>/dev/null | grep -qx installed || missing="$$missing $$p"; \
    done; \
    if [ -n "$$missing" ]; then \
        sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
        echo "  APT  $$missing"; \
        $$sudo apt-get update -qq >/dev/null || true; \
        $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
    fi; \
fi
endef

deps: ## install what build and tests need (Debian)
	$(call install_packages,$(DEPS_BUILD) $(DEPS_TEST))

deps-build:
	$(call install_packages,$(DEPS_BUILD))

deps-lint:
	$(call install_packages,$(DEPS_BUILD) $(DEPS_LINT))

deps-clients: ## install the HTTP clients of test-clients
	$(call install_packages,$(DEPS_BUILD) $(DEPS_CLIENTS))

deps-bench: ## install what the benchmarks compare with
	$(call install_packages,$(DEPS_BUILD) $(DEPS_BENCH))

libs:
	@missing=0; \
	if ! command -v pkg-config >/dev/null 2>&1; then \
	    echo "missing: pkg-config (Debian: make deps)" >&2; exit 1; \
	fi; \
	for l in $(LIBRARIES) $(WANT); do \
	    why=$$(pkg-config --short-errors --print-errors --exists $$l 2>&1) || \
	        { echo "missing library: $$l: $$why (on Debian: make deps)" | tr '\n' ' ' >&2; echo >&2; missing=1; }; \
	done; \
	exit $$missing

# ---- build ---------------------------------------------------------------------------------------
# The flags file changes only when the flags do; everything depends on it, so a change of compiler
# or flags rebuilds.
$B/flags: FORCE
	@mkdir -p $B
	@echo '$(CC) $(BASE_CFLAGS) $(OPTIMIZE) $(CFLAGS) $(SANITIZE)' | cmp -s - $@ || \
	    echo '$(CC) $(BASE_CFLAGS) $(OPTIMIZE) $(CFLAGS) $(SANITIZE)' > $@
FORCE:

$B/obj/%.o: %.c $B/flags
	$(say) CC '$*.c'
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(OPTIMIZE) $(LIB_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$S/obj/%.o: %.c $B/flags
	$(say) CC '$*.c (sanitize)'
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(SANITIZE) -Isrc -Itests/support -Itests/store $(LIB_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$B/libkvgate.a: $(LIB_OBJ)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$S/libkvgate.a: $(SAN_LIB_OBJ)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$B/kvgate: $B/obj/src/main.o $B/libkvgate.a
	$(say) LD $@
	$(Q)$(CC) -pthread $(LDFLAGS) -o $@ $^ $(LIB_LIBS)

$S/kvgate: $S/obj/src/main.o $S/libkvgate.a
	$(say) LD $@
	$(Q)$(CC) -pthread $(SANITIZE) -o $@ $^ $(LIB_LIBS)

$B/kvstall: $(KVSTALL_SRC:%.c=$B/obj/%.o) $B/libkvgate.a
	$(say) LD $@
	$(Q)$(CC) -pthread $(LDFLAGS) -o $@ $^ $(LIB_LIBS)

$S/kvstall: $(KVSTALL_SRC:%.c=$S/obj/%.o) $S/libkvgate.a
	$(say) LD $@
	$(Q)$(CC) -pthread $(SANITIZE) -o $@ $^ $(LIB_LIBS)

$S/tests/%: $S/obj/tests/%.o $(SAN_SUPPORT_OBJ) $S/libkvgate.a
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $(SANITIZE) -o $@ $^ $(LIB_LIBS) -lcmocka

$S/tests/net/%: $S/obj/tests/net/%.o $(NET_SRC:%.c=$S/obj/%.o) $(SAN_SUPPORT_OBJ) $S/libkvgate.a
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $(SANITIZE) -o $@ $^ $(LIB_LIBS) -lcmocka

# Switches the rules against stalls off, one at a time, so that the tests of them can be seen to fail.
$S/tests/net/switch_off.so: tests/net/preload/switch_off.c $B/flags
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(OPTIMIZE) -fPIC -shared -o $@ $< -ldl

$S/tests/stall/%: $S/obj/tests/stall/%.o $(SAN_KVSTALL_OBJ) $(SAN_SUPPORT_OBJ) $S/libkvgate.a
	$(say) LD $@
	@mkdir -p $(@D)
	$(Q)$(CC) -pthread $(SANITIZE) -o $@ $^ $(LIB_LIBS) -lcmocka

-include $(shell find $B -name '*.d' 2>/dev/null)

# ---- fuzzing: clang's libFuzzer on the pure parsers ---------------------------------------------
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$B/fuzz/%)
FUZZ_FLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_SECONDS ?= 60

$B/fuzz/obj/%.o: %.c $B/flags
	$(say) CC '$*.c (fuzz)'
	@mkdir -p $(@D)
	$(Q)clang $(BASE_CFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

$B/fuzz/libkvgate.a: $(LIB_SRC:%.c=$B/fuzz/obj/%.o)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(FUZZ_BIN): $B/fuzz/%: $B/fuzz/obj/tests/fuzz/%.o $B/fuzz/libkvgate.a
	$(say) LD $@
	$(Q)clang -pthread $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LIB_LIBS)

fuzz: deps-lint ## fuzz each parser for FUZZ_SECONDS (60)
	@$(MAKE) --no-print-directory $(FUZZ_BIN)
	$(Q)for f in $(FUZZ_BIN); do \
	    mkdir -p $$f.corpus; \
	    $$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -verbosity=0 -artifact_prefix=$$f- $$f.corpus || exit 1; \
	done

# ---- run and test --------------------------------------------------------------------------------
run: deps-build ## build, and serve the embedded store on 127.0.0.1:8085
	@$(MAKE) --no-print-directory all
	$(Q)exec $B/kvgate

test: deps ## run every test, with sanitizers
	@$(MAKE) --no-print-directory libs WANT="$(LIBRARIES_TEST)"
	@$(MAKE) --no-print-directory check

# The tests find the program under test in KVGATE.
check: $B/kvgate $(SAN_PROGRAMS) $(TEST_BIN) $S/tests/net/switch_off.so
	$(Q)KVGATE=$(abspath $S/kvgate) KVSTALL=$(abspath $S/kvstall) tests/run $(TEST_BIN)
	$(Q)KVGATE=$(abspath $S/kvgate) tests/clients/run --light
	$(Q)tests/guard/instructions.py $B/kvgate

accept-instructions: deps all ## take this build's instructions per request for the new measure
	$(Q)tests/guard/instructions.py --accept $B/kvgate

CHAOS_SECONDS ?= 60

chaos: deps ## kill, stop and start memcached under load for CHAOS_SECONDS (60)
	@$(MAKE) --no-print-directory $(SAN_PROGRAMS) $S/tests/http/test_chaos
	$(Q)KVGATE=$(abspath $S/kvgate) KVGATE_CHAOS_SECONDS=$(CHAOS_SECONDS) $S/tests/http/test_chaos

test-clients: deps-clients ## real HTTP clients, each request timed
	@$(MAKE) --no-print-directory all
	$(Q)KVGATE=$(abspath $B/kvgate) tests/clients/run

$B/bench/floor: tests/bench/floor.c $B/flags
	$(say) CC '$<'
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(OPTIMIZE) -o $@ $<

bench: deps-bench all ## kvgate beside nginx, webdis and a bare responder: table, CSV and pictures in build/bench
	@$(MAKE) --no-print-directory $B/bench/floor
	$(Q)tests/bench/bench.py $B/kvgate $B/bench/floor $B/bench

bench-quick: deps-bench all ## the same in two minutes: four cells, fewer peers
	@$(MAKE) --no-print-directory $B/bench/floor
	$(Q)tests/bench/bench.py --quick $B/kvgate $B/bench/floor $B/bench

bench-scaling: deps-bench all ## cost per request by connections, waiting requests, workers and servers
	$(Q)python3 tests/bench/scaling.py $B/kvgate $B/bench

under-load: deps-bench all ## one connection's round trips while wrk keeps 64 others busy
	$(Q)tests/bench/under_load.sh $B/kvgate

beside-big: deps-bench all ## small GETs beside a stream of values of 300 KB
	$(Q)tests/bench/beside_big.sh $B/kvgate

verdicts: deps-bench all ## what kvstall says of kvgate, nginx, webdis; pictures in build/stall
	$(Q)tests/bench/verdicts.sh $B/kvgate $B/kvstall $B/stall

# ---- care ----------------------------------------------------------------------------------------
lint: deps-lint ## format, static analysis, every header alone
	$(say) LINT 'clang-format'
	$(Q)clang-format --dry-run -Werror $(ALL_C) $(ALL_H)
	$(say) LINT 'headers alone'
	$(Q)for h in $(HEADERS) $(wildcard src/*.h src/*/*.h); do \
	    $(CC) $(BASE_CFLAGS) -Isrc -Isrc/kvstall $(LIB_CFLAGS) -Werror -fsyntax-only -x c $$h || exit 1; \
	done
	$(say) LINT 'clang, warnings are errors'
	$(Q)for c in $(LIB_SRC) src/main.c $(KVSTALL_SRC); do \
	    clang $(BASE_CFLAGS) $(LIB_CFLAGS) -Werror -fsyntax-only $$c || exit 1; \
	done
	$(say) LINT 'clang-tidy'
	$(Q)for c in $(LIB_SRC) src/main.c $(KVSTALL_SRC); do \
	    clang-tidy --quiet --warnings-as-errors='*' $$c -- $(BASE_CFLAGS) $(LIB_CFLAGS) 2>/dev/null || exit 1; \
	done

format: ## let clang-format rewrite the sources
	$(Q)clang-format -i $(ALL_C) $(ALL_H)

install: all ## install program, configuration, unit and man pages
	install -D -m 755 $B/kvgate $(DESTDIR)$(PREFIX)/bin/kvgate
	$(if $(KVSTALL_SRC),install -D -m 755 $B/kvstall $(DESTDIR)$(PREFIX)/bin/kvstall)
	test -e $(DESTDIR)$(SYSCONFDIR)/kvgate.conf || \
	    install -D -m 644 conf/kvgate.conf $(DESTDIR)$(SYSCONFDIR)/kvgate.conf
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|@PREFIX@|$(PREFIX)|g; s|@SYSCONFDIR@|$(SYSCONFDIR)|g' systemd/kvgate.service \
	    > $(DESTDIR)$(UNITDIR)/kvgate.service
	for page in $(wildcard src/*.[1-8]); do \
	    install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; \
	done

clean: ## remove build/
	rm -rf $B
