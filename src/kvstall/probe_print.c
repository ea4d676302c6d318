/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe_print.c: the table of the clients, and the verdict in plain words or as JSON. The words
 * for each finding are here.
 */
#include <inttypes.h>

#include "json.h"
#include "probe.h"
#include "timing.h"

/* A finding in words. */
struct finding_text {
    const char *id;       /* for machines */
    const char *headline; /* one line */
    const char *why;      /* how it comes about */
    const char *remedy;   /* what to do */
};

static const struct finding_text texts[PROBE_FINDINGS] = {
    [PROBE_HALF_REQUEST] = { "delayed-ack-of-half-request",
                             "The server delays its ACK of a half request.",
                             "A client that writes its request in pieces, with Nagle's algorithm "
                             "on, may not send the\n"
                             "  second piece before the first is acknowledged; the server has "
                             "nothing to answer yet, and\n"
                             "  its kernel delays the ACK.",
                             "in the server, set TCP_QUICKACK after each read that leaves a "
                             "request unfinished, or put\n"
                             "  a gateway in front that does. In the client, write header and body "
                             "in one call\n"
                             "  (writev), or set TCP_NODELAY." },
    [PROBE_SPLIT_ANSWER] = { "split-answer", "The server splits its answer.",
                             "It writes the answer in pieces, with Nagle's algorithm on: the "
                             "second piece waits until\n"
                             "  the client has acknowledged the first, and the client, as clients "
                             "do, delays its ACK.",
                             "in the server, write header and body in one call (writev, MSG_MORE), "
                             "or set\n"
                             "  TCP_NODELAY. A client cannot help it, short of TCP_QUICKACK before "
                             "each read." },
    [PROBE_CONTINUE_LATE] = { "late-100-continue", "100 Continue comes late.",
                              "A client that sends Expect: 100-continue waits for it before it "
                              "sends the body.",
                              "in the server, send 100 Continue in a write of its own as soon as "
                              "the header is read,\n"
                              "  with TCP_NODELAY on. In the client, send no Expect (curl: -H "
                              "'Expect:')." },
    [PROBE_CONTINUE_NEVER] = { "no-100-continue", "100 Continue never comes.",
                               "A client that sends Expect: 100-continue waits for it, often a "
                               "second, and only then sends\n"
                               "  the body.",
                               "in the server, send 100 Continue when the header is read and the "
                               "body is wanted. In the\n"
                               "  client, send no Expect (curl: -H 'Expect:')." },
    [PROBE_SLOW_PIECES] = { "slow-on-pieces",
                            "The server takes long over a request that comes in pieces, with Nagle "
                            "off, too.",
                            "Every piece was sent at once, so neither Nagle's algorithm nor the "
                            "ACK of the server held\n"
                            "  it back: the server itself waits between its reads.",
                            "in the server, look for a timer or a poll interval between two reads "
                            "of a request. In\n"
                            "  the client, write the request in one call. Then probe again." },
};

static const char *
method_of(const struct probe *p, const struct probe_cell *cell)
{
    return cell->kind->write ? p->service.method : "GET";
}

static void
print_title(const struct probe *p, const struct probe_cell *cell, FILE *out)
{
    const struct probe_kind *kind = cell->kind;
    char title[64];

    if (kind->measure == PROBE_ANSWER) {
        snprintf(title, sizeof(title), "answer to %s", method_of(p, cell));
    } else {
        snprintf(title, sizeof(title), "%s%s%s", kind->write ? p->service.method : "",
                 kind->write ? ", " : "", kind->name);
    }
    fprintf(out, "%-28s %-5s ", title,
            kind->measure == PROBE_ANSWER ? ""
            : kind->nodelay               ? "off"
                                          : "on");
}

static void
print_cell(const struct probe *p, const struct probe_cell *cell, FILE *out)
{
    static const char *const results[] = { "", "  STALL", "  unsteady" };
    const struct judgement *j = &cell->judgement;

    print_title(p, cell, out);
    if (!cell->played) {
        fputs("not played: the time was over\n", out);
        return;
    }
    if (probe_shows(cell, PROBE_CONTINUE_NEVER)) {
        fputs("no 100 Continue within a second  STALL\n", out);
        return;
    }
    fprintf(out, "%9.2f %9.2f %9.2f  %3zu of %zu%s", timing_ms(j->good_ns), timing_ms(j->median_ns),
            timing_ms(j->worst_ns), j->stalled, j->rounds, results[j->result]);
    if (cell->status != cell->good_status) {
        fprintf(out, "  (answered %d, not %d)", cell->status, cell->good_status);
    } else if (cell->early > 0) {
        fprintf(out, "  (answered %d instead of 100)", cell->status);
    }
    fputc('\n', out);
}

/* Prints the cells of one kind of measure, each manner with Nagle on and off below each other. */
static void
print_cells(const struct probe *p, bool answers, FILE *out)
{
    fprintf(out, "%-28s %-5s %9s %9s %9s  %s\n", answers ? "" : "client", answers ? "" : "Nagle",
            "good, ms", "this, ms", "longest", "stalled");
    for (int order = 0; order < 2 * 2 * EXCHANGE_STYLES; order++) {
        bool write = order < 2 * EXCHANGE_STYLES, nodelay = order % 2 != 0;
        int style = order / 2 % EXCHANGE_STYLES;

        for (size_t i = 0; i < p->cell_count; i++) {
            const struct probe_kind *kind = p->cells[i].kind;

            if ((kind->measure == PROBE_ANSWER) == answers && kind->write == write &&
                kind->nodelay == nodelay && (int)kind->style == style && (p->writes || !write)) {
                print_cell(p, &p->cells[i], out);
            }
        }
    }
}

static void
print_table(const struct probe *p, FILE *out)
{
    print_cells(p, false, out);
    fputs("\nThe time until the answer begins (Expect: until 100 Continue). \"good\" is a client "
          "that writes\nonce, with Nagle off, played in turn with the other.\n\n",
          out);
    print_cells(p, true, out);
    fputs("\nThe time from the first byte of the answer to the last, when the client delays its "
          "ACKs;\n\"good\" acknowledges at once.\n\n",
          out);
}

static void
print_answer(const struct probe *p, FILE *out)
{
    for (size_t i = 0; i < p->cell_count; i++) {
        const struct probe_cell *cell = &p->cells[i];

        if (!cell->played || cell->kind->measure != PROBE_ANSWER) {
            continue;
        }
        if (cell->together == cell->rounds) {
            fprintf(out, "The answer to %s (%d) came whole in the first read.\n",
                    method_of(p, cell), cell->status);
        } else {
            fprintf(out,
                    "The answer to %s (%d) came in more than one read in %zu of %zu rounds%s\n",
                    method_of(p, cell), cell->status, cell->rounds - cell->together, cell->rounds,
                    cell->judgement.result == JUDGE_STALL ? "." : ", but did not wait for an ACK.");
        }
    }
}

/* The clients that show a finding, and how long it takes them. */
static void
print_seen(const struct probe *p, enum probe_finding finding, FILE *out)
{
    bool first = true;

    for (size_t i = 0; i < p->cell_count; i++) {
        const struct probe_cell *cell = &p->cells[i];
        const struct judgement *j = &cell->judgement;

        if (!probe_shows(cell, finding)) {
            continue;
        }
        fputs(first ? "  Seen with: " : "; ", out);
        if (cell->kind->write && cell->kind->measure != PROBE_ANSWER) {
            fprintf(out, "%s, ", p->service.method);
        }
        fputs(cell->kind->name, out);
        if (finding == PROBE_CONTINUE_NEVER) {
            fprintf(out, " (Nagle %s)", cell->kind->nodelay ? "off" : "on");
        } else {
            fprintf(out, " (+%.0f ms)", timing_ms(j->median_ns - j->good_ns));
        }
        first = false;
    }
    fputs(first ? "" : ".\n", out);
}

/* What a reader must know to trust the verdict as far as it goes. */
static void
print_notes(const struct probe *p, FILE *out)
{
    if (!p->writes) {
        fprintf(out,
                "\nNote: %s was answered %d, so only GET was probed (it was answered %d). If the "
                "service takes\n  writes elsewhere, give that URL, or --method POST.\n",
                p->service.method, p->write_status, p->read_status);
    }
    if (!p->kept) {
        fputs("\nNote: the server closes connections after an answer. On a new connection Linux "
              "acknowledges at\n  once for a while, so this is right for such clients; a server "
              "that keeps connections may differ.\n",
              out);
    }
    if (p->verdict.unsteady > 0) {
        fprintf(
            out,
            "\nNote: %zu clients were too unsteady to judge: the times scatter more than a stall "
            "would\n  explain. Try again when machine and server are less busy, or with more "
            "--rounds.\n",
            p->verdict.unsteady);
    }
    if (p->verdict.skipped > 0) {
        fprintf(out,
                "\nNote: %zu clients were not played, the time was over. --seconds gives it "
                "more.\n",
                p->verdict.skipped);
    }
}

void
probe_print_text(const struct probe *p, FILE *out)
{
    char where[NET_HOST_MAX + NET_PORT_MAX + 3];

    net_print_address(&p->service.target.address, where, sizeof(where));
    fprintf(out, "http://%s%s (%s)", p->service.url.host, p->service.url.path, where);
    if (p->writes) {
        fprintf(out, ", values of %" PRIu64 " bytes", p->size);
    }
    fputs("\n\n", out);
    print_table(p, out);
    print_answer(p, out);
    fputs("\nVerdict: ", out);
    if (!probe_found(&p->verdict)) {
        fputs(p->verdict.skipped > 0 ? "no stall found in what was played.\n" : "no stall found.\n",
              out);
    } else {
        fputs("stall found.\n", out);
    }
    for (int f = 0; f < PROBE_FINDINGS; f++) {
        if (p->verdict.found[f]) {
            fprintf(out, "\n* %s\n  %s\n", texts[f].headline, texts[f].why);
            print_seen(p, (enum probe_finding)f, out);
            fprintf(out, "  Remedy: %s\n", texts[f].remedy);
        }
    }
    print_notes(p, out);
}

static void
json_cell(struct json *j, const struct probe *p, const struct probe_cell *cell)
{
    static const char *const results[] = { "quiet", "stall", "unsteady" };
    static const char *const measures[] = { "first-byte", "100-continue", "first-to-last-byte" };
    bool none = probe_shows(cell, PROBE_CONTINUE_NEVER);

    json_open(j, NULL, '{');
    json_string(j, "client", cell->kind->id);
    json_string(j, "method", method_of(p, cell));
    json_bool(j, "nagle", !cell->kind->nodelay);
    json_string(j, "measure", measures[cell->kind->measure]);
    json_bool(j, "played", cell->played);
    if (cell->played) {
        json_string(j, "result", none ? "none" : results[cell->judgement.result]);
        json_integer(j, "status", cell->status);
        json_integer(j, "rounds", (int64_t)cell->judgement.rounds);
        json_integer(j, "stalled_rounds", (int64_t)cell->judgement.stalled);
        json_ms(j, "good_median_ms", cell->judgement.good_ns);
        json_ms(j, "median_ms", cell->judgement.median_ns);
        json_ms(j, "longest_ms", cell->judgement.worst_ns);
        json_integer(j, "rounds_in_one_read", (int64_t)cell->together);
        json_integer(j, "rounds_in_all", (int64_t)cell->rounds);
    }
    json_close(j, '}');
}

void
probe_print_json(const struct probe *p, FILE *out)
{
    struct json j = { .out = out };
    char url[URL_HOST_MAX + URL_PATH_MAX + 8];
    bool found = probe_found(&p->verdict);

    snprintf(url, sizeof(url), "http://%s%s", p->service.url.host, p->service.url.path);
    json_open(&j, NULL, '{');
    json_string(&j, "url", url);
    json_string(&j, "verdict",
                found                    ? "stall"
                : p->verdict.skipped > 0 ? "incomplete"
                                         : "no-stall");
    json_open(&j, "findings", '[');
    for (int f = 0; f < PROBE_FINDINGS; f++) {
        if (p->verdict.found[f]) {
            json_string(&j, NULL, texts[f].id);
        }
    }
    json_close(&j, ']');
    json_bool(&j, "writes_taken", p->writes);
    json_integer(&j, "write_status", p->write_status);
    json_integer(&j, "read_status", p->read_status);
    json_bool(&j, "connections_kept", p->kept);
    json_ms(&j, "connect_ms", p->service.target.rtt_ns);
    json_integer(&j, "unsteady", (int64_t)p->verdict.unsteady);
    json_integer(&j, "skipped", (int64_t)p->verdict.skipped);
    json_open(&j, "clients", '[');
    for (size_t i = 0; i < p->cell_count; i++) {
        json_cell(&j, p, &p->cells[i]);
    }
    json_close(&j, ']');
    json_close(&j, '}');
}
