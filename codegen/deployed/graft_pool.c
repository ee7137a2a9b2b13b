/* See graft_pool.h. */
#include "graft_pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>

/* As in unistd.h, which hides it from programs in strict C. */
extern long syscall(long number, ...);

enum { line_bytes = 64, most_threads = 256, spins = 4000, stack_bytes = 256 << 10 };

struct graft_pool {
  /* Tasks that nobody has begun. A claim takes one off; where there is none it goes on below 0. Whoever has claimed a
   * task may read what the caller wrote before: the loop does not end until that task has. */
  _Alignas(line_bytes) atomic_llong left;
  _Alignas(line_bytes) atomic_uint ended; /* tasks of this loop */
  atomic_uint caller_sleeps;
  _Alignas(line_bytes) atomic_uint loops; /* changes to wake helpers */
  atomic_uint sleepers;
  atomic_int stops;
  atomic_int inside; /* helpers that claim tasks, or run them */
  atomic_flag busy;
  _Alignas(line_bytes) void (*body)(void*, int64_t);
  void* closure;
  int64_t n;
  int helpers;
  pthread_t helper[most_threads];
};

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

static void sleep_on(atomic_uint* word, unsigned value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint* word, int threads) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* Runs tasks until none is left to begin. */
static void work(graft_pool* pool) {
  long long left;
  while ((left = atomic_fetch_sub(&pool->left, 1)) > 0) {
    const int64_t n = pool->n;
    pool->body(pool->closure, n - left);
    /* The last one to end looks whether the caller sleeps, who is counted as asleep before it looks for the last time
     * whether all have ended: no end is missed. */
    if (atomic_fetch_add(&pool->ended, 1) + 1 == (unsigned)n && atomic_load(&pool->caller_sleeps))
      wake(&pool->ended, 1);
  }
}

static void* help(void* argument) {
  graft_pool* const pool = (graft_pool*)argument;
  while (!atomic_load(&pool->stops)) {
    int i;
    for (i = 0; i < spins && atomic_load_explicit(&pool->left, memory_order_relaxed) <= 0; ++i) pause_briefly();
    if (i < spins) {
      atomic_fetch_add(&pool->inside, 1);
      work(pool);
      atomic_fetch_sub(&pool->inside, 1);
      continue;
    }
    {
      /* Counted before the last look for work, so that no loop is missed; whoever counts the loop after this look wakes
       * it, or keeps it awake. */
      const unsigned loops = atomic_load(&pool->loops);
      atomic_fetch_add(&pool->sleepers, 1);
      if (atomic_load(&pool->left) <= 0 && !atomic_load(&pool->stops)) sleep_on(&pool->loops, loops);
    }
  }
  return NULL;
}

/* Once until they sleep again: on a busy machine it is long before they run. */
static void wake_helpers(graft_pool* pool) {
  if (atomic_load(&pool->sleepers) == 0) return;
  atomic_store(&pool->sleepers, 0);
  atomic_fetch_add(&pool->loops, 1);
  wake(&pool->loops, INT_MAX);
}

graft_pool* graft_pool_start(int threads) {
  graft_pool* pool;
  pthread_attr_t attributes;
  int refused = 0;
  if (threads < 1 || threads > most_threads) return NULL;
  pool = (graft_pool*)aligned_alloc(line_bytes, sizeof *pool);
  if (pool == NULL) return NULL;
  atomic_init(&pool->left, 0);
  atomic_init(&pool->ended, 0);
  atomic_init(&pool->caller_sleeps, 0);
  atomic_init(&pool->loops, 0);
  atomic_init(&pool->sleepers, 0);
  atomic_init(&pool->stops, 0);
  atomic_init(&pool->inside, 0);
  atomic_flag_clear(&pool->busy);
  pool->helpers = 0;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  while (!refused && pool->helpers + 1 < threads) {
    refused = pthread_create(&pool->helper[pool->helpers], &attributes, help, pool);
    if (!refused) ++pool->helpers;
  }
  pthread_attr_destroy(&attributes);
  if (!refused) return pool;
  graft_pool_stop(pool);
  return NULL;
}

void graft_pool_stop(graft_pool* pool) {
  int i;
  if (pool == NULL) return;
  atomic_store(&pool->stops, 1);
  atomic_fetch_add(&pool->loops, 1);
  wake(&pool->loops, INT_MAX);
  for (i = 0; i < pool->helpers; ++i) pthread_join(pool->helper[i], NULL);
  free(pool);
}

void graft_pool_for(void* context, void (*body)(void*, int64_t), void* closure, int64_t n) {
  graft_pool* const pool = (graft_pool*)context;
  int i;
  if (pool == NULL || pool->helpers == 0 || n <= 1 || n > INT_MAX || atomic_flag_test_and_set(&pool->busy)) {
    int64_t task;
    for (task = 0; task < n; ++task) body(closure, task);
    return;
  }
  pool->body = body;
  pool->closure = closure;
  pool->n = n;
  atomic_store_explicit(&pool->ended, 0, memory_order_relaxed);
  atomic_store(&pool->left, n);
  wake_helpers(pool);
  work(pool);
  for (i = 0; i < spins && atomic_load(&pool->ended) != (unsigned)n; ++i) pause_briefly();
  if (i == spins) {
    unsigned ended;
    atomic_store(&pool->caller_sleeps, 1);
    while ((ended = atomic_load(&pool->ended)) != (unsigned)n) sleep_on(&pool->ended, ended);
    atomic_store(&pool->caller_sleeps, 0);
  }
  atomic_flag_clear(&pool->busy);
}

int graft_pool_leave(graft_pool* pool) {
  if (pool == NULL) return 0;
  atomic_store(&pool->left, 0);
  if (atomic_load(&pool->inside) != 0) return 1;
  atomic_store(&pool->caller_sleeps, 0);
  atomic_flag_clear(&pool->busy);
  return 0;
}
