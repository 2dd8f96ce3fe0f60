/* SPDX-License-Identifier: Apache-2.0
 *
 * Sleeps until the times of a schedule and does nothing else: measures the machine's own lateness.
 *
 *   bare_sleep TIMERS PERIOD_NS SECONDS LATE_NS threads|processes
 *
 * Each timer has its own thread or process; the first times of the timers are evenly spaced within a period. Prints
 * the number of times, and how many of them were reached more than LATE_NS late. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const long long second_ns = 1000000000LL;
static long long begin_ns, period_ns, end_ns, late_ns;

struct timer {
  long long first_ns, count, late;
};

static void* run(void* argument) {
  struct timer* const timer = argument;
  prctl(PR_SET_TIMERSLACK, 1); /* as in the workers */
  for (long long due_ns = timer->first_ns; due_ns < end_ns; due_ns += period_ns) {
    const struct timespec due = {.tv_sec = due_ns / second_ns, .tv_nsec = due_ns % second_ns};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) continue;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    timer->count += 1;
    timer->late += now.tv_sec * second_ns + now.tv_nsec - due_ns > late_ns;
  }
  return NULL;
}

static void run_in_threads(struct timer* timers, int count) {
  pthread_t* const threads = calloc((size_t)count, sizeof *threads);
  for (int i = 0; i < count; ++i)
    if (pthread_create(&threads[i], NULL, run, &timers[i]) != 0) exit(1);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  free(threads);
}

static void run_in_processes(struct timer* timers, int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) exit(1);
    if (child > 0) continue;
    run(&timers[i]);
    _exit(0);
  }
  while (wait(NULL) > 0) continue;
}

int main(int count, char** arguments) {
  if (count != 6) return 2;
  const int timer_count = atoi(arguments[1]);
  period_ns = atoll(arguments[2]);
  late_ns = atoll(arguments[4]);
  struct timer* const timers =
      mmap(NULL, (size_t)timer_count * sizeof *timers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (timers == MAP_FAILED) return 1;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  begin_ns = now.tv_sec * second_ns + now.tv_nsec + second_ns;
  end_ns = begin_ns + atoll(arguments[3]) * second_ns;
  for (int i = 0; i < timer_count; ++i) timers[i].first_ns = begin_ns + i * (period_ns / timer_count);
  if (strcmp(arguments[5], "threads") == 0)
    run_in_threads(timers, timer_count);
  else
    run_in_processes(timers, timer_count);
  long long sum = 0, late = 0;
  for (int i = 0; i < timer_count; ++i) {
    sum += timers[i].count;
    late += timers[i].late;
  }
  printf("%lld %lld\n", sum, late);
  return 0;
}
