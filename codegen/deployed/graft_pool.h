/* Threads for kernels made by graft: graft_pool_for is a graft_parallel_for (graft_parallel.h), whose context is a
 * pool.
 *
 *   graft_pool* pool = graft_pool_start(4);
 *   net_run(x, y, arena, graft_pool_for, pool);
 *   graft_pool_stop(pool);
 *
 * Compile graft_pool.c with the program (C11, Linux, -pthread), once however many libraries have one. Its functions are
 * hidden in shared objects, each of which may have a copy; define GRAFT_POOL_API to show them.
 *
 * Nothing is allocated after the start. Nobody waits for a thread that has not begun to work: tasks are claimed one by
 * one, the caller takes what nobody has claimed, and waits for tasks that others are in. Idle threads look for work for
 * some 100 us before they sleep. */
#ifndef GRAFT_POOL_H
#define GRAFT_POOL_H

#include <stdint.h>

#ifndef GRAFT_POOL_API
#define GRAFT_POOL_API __attribute__((visibility("hidden")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graft_pool graft_pool;

/* `threads` in all, of which the one that calls graft_pool_for is one: 1 to 256. NULL: the system has no more. */
GRAFT_POOL_API graft_pool* graft_pool_start(int threads);

/* Not while a loop runs. NULL is allowed. */
GRAFT_POOL_API void graft_pool_stop(graft_pool* pool);

/* body(closure, i) for each i in 0 .. n-1, each once; returns when all calls have returned. Threads that call it while
 * another one does, or from a body, run all of theirs themselves; so does everybody where the pool is NULL. */
GRAFT_POOL_API void graft_pool_for(void* pool, void (*body)(void* closure, int64_t i), void* closure, int64_t n);

/* For a handler of signals that will leave a graft_pool_for by a jump: no task begins any more. Returns 1 while other
 * threads are in one; the loop is over when it returns 0. */
GRAFT_POOL_API int graft_pool_leave(graft_pool* pool);

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_POOL_H */
