// SPDX-License-Identifier: Apache-2.0
// A kernel that accepts a timer slack and keeps another, or (LAGOMETER_TEST_SLACK_REFUSED) refuses it.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...) {
  va_list words;
  va_start(words, option);
  const unsigned long second = va_arg(words, unsigned long), third = va_arg(words, unsigned long),
                      fourth = va_arg(words, unsigned long), fifth = va_arg(words, unsigned long);
  va_end(words);
  if (option != PR_SET_TIMERSLACK) return (int)syscall(SYS_prctl, option, second, third, fourth, fifth);
  if (getenv("LAGOMETER_TEST_SLACK_REFUSED") == NULL) return 0;
  errno = EPERM;
  return -1;
}
