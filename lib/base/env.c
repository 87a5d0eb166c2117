/* Settings: rows of env.def, read from the environment at first use.
 * A later change of the environment has no effect. */
#include <stdlib.h>
#include <string.h>
#include "rl.h"

static const char *const env_names[] = {
#define RL_ENV(id, name, kind, def, doc) name,
#include "../env.def"
#undef RL_ENV
};
static const char *const env_defaults[] = {
#define RL_ENV(id, name, kind, def, doc) def,
#include "../env.def"
#undef RL_ENV
};
static char *env_values[RL_ENV_COUNT];

/* Two threads may read a setting at once for the first time: the first copy stays, the other is freed. */
const char *rl_env_str(rl_env_id id) {
  char *v = __atomic_load_n(&env_values[id], __ATOMIC_ACQUIRE), *none = NULL;
  if (v) return v;
  const char *e = getenv(env_names[id]);
  v = strdup(e ? e : env_defaults[id]);
  if (!v) return env_defaults[id];
  if (__atomic_compare_exchange_n(&env_values[id], &none, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return v;
  free(v);
  return none;
}

int rl_env_int(rl_env_id id) { return atoi(rl_env_str(id)); }
