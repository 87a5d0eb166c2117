/* Error: the message of the last failure, one per thread.
 * Nothing below the binding prints, exits or jumps: a status goes up and the message waits here. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "rl.h"

#define ERROR_SIZE 1024

/* A pointer, not the buffer: the library's thread-local block has to stay small enough for a late dlopen. */
static RL_TLS char *error_message;
static pthread_key_t error_key;
static pthread_once_t error_once = PTHREAD_ONCE_INIT;

static void error_make_key(void) { pthread_key_create(&error_key, free); }

static char *error_buffer(void) {
  if (error_message) return error_message;
  pthread_once(&error_once, error_make_key);
  error_message = malloc(ERROR_SIZE);
  pthread_setspecific(error_key, error_message);
  return error_message;
}

static void error_format(const char *fmt, va_list ap) {
  char *b = error_buffer();
  if (b) vsnprintf(b, ERROR_SIZE, fmt, ap);
}

rl_status rl_error(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  error_format(fmt, ap);
  va_end(ap);
  return RL_ERR;
}

rl_status rl_error_status(rl_status s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  error_format(fmt, ap);
  va_end(ap);
  return s;
}

const char *rl_error_message(void) { return error_message ? error_message : "no error"; }
