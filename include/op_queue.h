/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * op_queue.h: a first-in first-out list of store operations, linked through store_op.next.
 * An op is on at most one queue. The queue owns nothing. A queue of zeros is empty.
 */
#ifndef KVGATE_OP_QUEUE_H
#define KVGATE_OP_QUEUE_H

#include <stddef.h>

#include "store.h"

struct op_queue {
    struct store_op *head; /* (ref) oldest */
    struct store_op *tail; /* (ref) newest */
    size_t count;          /* ops on it */
};

static inline void
op_queue_push(struct op_queue *queue, struct store_op *op)
{
    op->next = NULL;
    if (queue->head == NULL) {
        queue->head = op;
    } else {
        queue->tail->next = op;
    }
    queue->tail = op;
    queue->count++;
}

/* The oldest op, taken off; NULL when there is none. */
static inline struct store_op *
op_queue_pop(struct op_queue *queue)
{
    struct store_op *op = queue->head;

    if (op != NULL) {
        queue->head = op->next;
        queue->count--;
        op->next = NULL;
    }
    return op;
}

/* Everything of FROM, in its order, goes behind everything of QUEUE; FROM is empty then. */
static inline void
op_queue_append(struct op_queue *queue, struct op_queue *from)
{
    if (from->head == NULL) {
        return;
    }
    if (queue->head == NULL) {
        queue->head = from->head;
    } else {
        queue->tail->next = from->head;
    }
    queue->tail = from->tail;
    queue->count += from->count;
    *from = (struct op_queue){ 0 };
}

/* The whole queue, taken: QUEUE is empty then. */
static inline struct op_queue
op_queue_take(struct op_queue *queue)
{
    struct op_queue all = *queue;

    *queue = (struct op_queue){ 0 };
    return all;
}

#endif
