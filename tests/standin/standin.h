/* What the stand-in runtime and the stand-in library know of each other. */
#ifndef STANDIN_H
#define STANDIN_H
#include <stddef.h>

typedef struct Queue Queue;

/* Whether [data, data + bytes) lies in device memory that was allocated. */
int standinHolds(const void *data, size_t bytes);
/* Work that is done when the queue is waited for. */
void standinEnqueue(Queue *queue, void (*work)(void *), void *argument);
/* Whether the environment variable STANDIN_FAULT is this word. */
int standinFault(const char *word);

#endif
