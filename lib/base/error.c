/* Error: the message of the last failure, one per thread.
 * Nothing below the binding prints, exits or jumps: a status goes up and the message waits here. */
#include <stdarg.h>
#include <stdio.h>
#include "rl.h"

static RL_TLS char error_message[1024];

rl_status rl_error(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(error_message, sizeof error_message, fmt, ap);
  va_end(ap);
  return RL_ERR;
}

rl_status rl_error_status(rl_status s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(error_message, sizeof error_message, fmt, ap);
  va_end(ap);
  return s;
}

const char *rl_error_message(void) { return error_message; }
