/* A stand-in for libcnrt.so: host memory is the device's, a queue does its work when it is waited for.
 *
 * STANDIN_DEVICES=n: how many devices there are (1). STANDIN_FAULT: malloc (large allocations fail), sync (a wait
 * fails), memcpy (copies fail).
 */
#include "standin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, FAILED = 632003, HOST_TO_DEVICE = 0, DEVICE_TO_HOST = 2, LARGE = 1 << 20 };

typedef struct Block {
    char *start;
    size_t size;
    struct Block *next;
} Block;
typedef struct Task {
    void (*work)(void *);
    void *argument;
    struct Task *next;
} Task;
struct Queue {
    Task *first, **last;
};
typedef struct {
    double microseconds; /* 0 until the queue has come to it */
} Notifier;

static Block *blocks;

int standinFault(const char *word) {
    const char *set = getenv("STANDIN_FAULT");
    return set && strcmp(set, word) == 0;
}

int standinHolds(const void *data, size_t bytes) {
    for (Block *block = blocks; block; block = block->next)
        if ((const char *)data >= block->start && (const char *)data + bytes <= block->start + block->size) return 1;
    return 0;
}

void standinEnqueue(Queue *queue, void (*work)(void *), void *argument) {
    Task *task = malloc(sizeof *task);
    *task = (Task){work, argument, NULL};
    *queue->last = task;
    queue->last = &task->next;
}

int cnrtGetDeviceCount(unsigned *count) {
    const char *set = getenv("STANDIN_DEVICES");
    *count = set ? (unsigned)atoi(set) : 1;
    return OK;
}

int cnrtSetDevice(int device) { return device == 0 ? OK : FAILED; }

int cnrtQueueCreate(Queue **queue) {
    *queue = malloc(sizeof **queue);
    **queue = (Queue){NULL, &(*queue)->first};
    return OK;
}

int cnrtQueueDestroy(Queue *queue) {
    free(queue);
    return OK;
}

int cnrtQueueSync(Queue *queue) {
    while (queue->first) {
        Task *task = queue->first;
        queue->first = task->next;
        if (!queue->first) queue->last = &queue->first;
        task->work(task->argument);
        free(task);
    }
    return standinFault("sync") ? FAILED : OK;
}

int cnrtMalloc(void **address, size_t size) {
    if (standinFault("malloc") && size > LARGE) return FAILED;
    Block *block = malloc(sizeof *block);
    *block = (Block){malloc(size), size, blocks};
    if (!block->start) {
        free(block);
        return FAILED;
    }
    blocks = block;
    *address = block->start;
    return OK;
}

int cnrtFree(void *address) {
    for (Block **link = &blocks; *link; link = &(*link)->next)
        if ((*link)->start == address) {
            Block *block = *link;
            *link = block->next;
            free(block->start);
            free(block);
            return OK;
        }
    return FAILED;
}

int cnrtMemset(void *address, int value, size_t size) {
    if (!standinHolds(address, size)) return FAILED;
    memset(address, value, size);
    return OK;
}

int cnrtMemcpy(void *target, const void *source, size_t size, int direction) {
    const void *device = direction == HOST_TO_DEVICE ? target : source;
    if (direction != HOST_TO_DEVICE && direction != DEVICE_TO_HOST) return FAILED;
    if (!standinHolds(device, size) || standinFault("memcpy")) return FAILED;
    memcpy(target, source, size);
    return OK;
}

static void strike(void *argument) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    (*(Notifier **)argument)->microseconds = (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
    free(argument);
}

int cnrtNotifierCreate(Notifier **notifier) {
    *notifier = calloc(1, sizeof **notifier);
    return OK;
}

int cnrtPlaceNotifier(Notifier *notifier, Queue *queue) {
    Notifier **argument = malloc(sizeof *argument);
    *argument = notifier;
    standinEnqueue(queue, strike, argument);
    return OK;
}

int cnrtNotifierDuration(const Notifier *begin, const Notifier *end, float *microseconds) {
    if (begin->microseconds == 0 || end->microseconds == 0) return FAILED; /* nobody has waited */
    *microseconds = (float)(end->microseconds - begin->microseconds);
    return OK;
}

int cnrtNotifierDestroy(Notifier *notifier) {
    free(notifier);
    return OK;
}
