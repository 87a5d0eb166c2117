/* Build: C text to a loaded library (text -> functions).
 *
 * Artifacts lie in a folder under names that hash the source, the flags, the compiler and the CPU. They are written beside their place and
 * renamed, so that processes may build the same one at once. The last bytes repeat the name: a file cut short by a full disk or a crash would
 * pass for a library and fault when mapped. One that lacks them, cannot be loaded, or does not carry its own name, is built again. */
#include "build.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
enum { BUILD_VERSION = 1, PARTS_MAX = 16, PART_KERNELS = 8, PART_BYTES = 12000 };

static const char *const flags_common[] = { "-std=gnu11",
                                            "-w",
                                            "-O1", /* the loops are already what they should be: half the time of -O3, the same speed */
                                            "-ftree-vectorize",
                                            "-fwrapv",
                                            "-fno-math-errno",
                                            "-fno-trapping-math",
                                            "-ffp-contract=off", /* as eager kernels: both round alike */
                                            "-fopenmp",
                                            "-fPIC",
#if defined(__x86_64__) || defined(__i386__)
                                            "-march=native",
                                            "-mprefer-vector-width=512",
#elif defined(__aarch64__)
                                            "-mcpu=native",
#endif
                                            NULL };

typedef struct digest {
  uint64_t a, b;
} digest;

static void mix_bytes(digest *d, const void *p, size_t n) {
  const unsigned char *s = p;
  for (size_t i = 0; i < n; i++) {
    d->a = (d->a ^ s[i]) * 0x100000001b3u;
    d->b = (d->b + s[i] + 1) * 0x9e3779b97f4a7c15u;
    d->b ^= d->b >> 29;
  }
}

static void mix_text(digest *d, const char *s) { mix_bytes(d, s, strlen(s) + 1); }

static char compiler_found[512];
static pthread_once_t compiler_once = PTHREAD_ONCE_INIT;

static void find_compiler(void) {
  static const char *const names[] = { "cc", "gcc", "clang" };
  const char *path = getenv("PATH");
  for (size_t k = 0; path && k < 3; k++) {
    for (const char *p = path; *p;) {
      size_t n = strcspn(p, ":");
      snprintf(compiler_found, sizeof compiler_found, "%.*s/%s", (int)n, p, names[k]);
      if (access(compiler_found, X_OK) == 0) return;
      *compiler_found = 0;
      p += n + (p[n] == ':');
    }
  }
}

/* The first of cc, gcc and clang on the path. */
static const char *compiler(void) {
  pthread_once(&compiler_once, find_compiler);
  return *compiler_found ? compiler_found : NULL;
}

bool rl_build_has_compiler(void) { return compiler() != NULL; }

static void mix_compiler(digest *d, const char *cc) {
  struct stat st;
  mix_text(d, cc);
  if (stat(cc, &st)) return;
  int64_t facts[2] = { (int64_t)st.st_size, (int64_t)st.st_mtime };
  mix_bytes(d, facts, sizeof facts);
}

/* The lines of the first processor that name it and its instructions. */
static void mix_cpu(digest *d) {
  char line[4096];
  FILE *f = fopen("/proc/cpuinfo", "r");
  if (!f) return;
  while (fgets(line, sizeof line, f) && *line != '\n')
    if (!strncmp(line, "flags", 5) || !strncmp(line, "model name", 10) || !strncmp(line, "Features", 8)) mix_text(d, line);
  fclose(f);
}

/* What all keys of this process share. */
static digest machine = { 0xcbf29ce484222325u, 0x84222325cbf29ce4u };
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static void mix_machine(void) {
  for (int i = 0; flags_common[i]; i++) mix_text(&machine, flags_common[i]);
  mix_compiler(&machine, compiler());
  mix_cpu(&machine);
  mix_text(&machine, rl_prelude_text);
}

static void make_key(const char *source, char key[40]) {
  pthread_once(&machine_once, mix_machine);
  digest d = machine;
  mix_text(&d, source);
  snprintf(key, 40, "%016" PRIx64 "%016" PRIx64, d.a, d.b);
}

static bool make_folder(const char *path) {
  char p[512];
  snprintf(p, sizeof p, "%s", path);
  for (char *s = p + 1; *s; s++) {
    if (*s != '/') continue;
    *s = 0;
    if (mkdir(p, 0777) && errno != EEXIST) return false;
    *s = '/';
  }
  return mkdir(p, 0777) == 0 || errno == EEXIST;
}

bool rl_build_folder(char *out, size_t n) {
  const char *c = rl_env_str(RL_ENV_CACHE), *x = getenv("XDG_CACHE_HOME"), *h = getenv("HOME");
  if (c && *c) snprintf(out, n, "%s/v%d", c, BUILD_VERSION);
  else if (x && *x) snprintf(out, n, "%s/relume/v%d", x, BUILD_VERSION);
  else if (h && *h) snprintf(out, n, "%s/.cache/relume/v%d", h, BUILD_VERSION);
  else snprintf(out, n, "/tmp/relume-%d/v%d", (int)getuid(), BUILD_VERSION);
  if (make_folder(out)) return true;
  snprintf(out, n, "/tmp/relume-%d/v%d", (int)getuid(), BUILD_VERSION);
  return make_folder(out);
}

/* Starts the compiler without a shell on n inputs; its messages go to log. */
static bool start_compiler(const char *mode, const char *const *in, int n, const char *out, const char *log, pid_t *pid) {
  const char *argv[32 + PARTS_MAX];
  int k = 0;
  posix_spawn_file_actions_t fa;
  argv[k++] = compiler();
  for (int i = 0; flags_common[i]; i++) argv[k++] = flags_common[i];
  argv[k++] = mode;
  argv[k++] = "-o";
  argv[k++] = out;
  for (int i = 0; i < n; i++) argv[k++] = in[i];
  argv[k++] = "-lm";
  argv[k] = NULL;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&fa, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&fa, 1, 2);
  int e = posix_spawn(pid, argv[0], &fa, NULL, (char *const *)argv, environ);
  posix_spawn_file_actions_destroy(&fa);
  return e == 0;
}

static bool wait_compiler(pid_t pid) {
  int status = -1;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run_compiler(const char *mode, const char *const *in, int n, const char *out, const char *log) {
  pid_t pid;
  return start_compiler(mode, in, n, out, log, &pid) && wait_compiler(pid);
}

/* A part of the source as a unit of its own; the first carries the key. */
static bool write_source(const char *path, const char *key, const char *head, size_t nhead, const char *text, size_t n) {
  FILE *f = fopen(path, "w");
  if (!f) return false;
  bool ok = fputs(rl_prelude_text, f) >= 0 && fputc('\n', f) >= 0;
  if (key) ok = ok && fprintf(f, "const char rl_key[] = \"%s\";\n", key) > 0;
  ok = ok && fwrite(head, 1, nhead, f) == nhead && fwrite(text, 1, n, f) == n;
  return fclose(f) == 0 && ok;
}

static rl_status log_error(const char *log, const char *folder) {
  char text[1500];
  int e = errno;
  FILE *f = fopen(log, "r");
  size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  text[n] = 0;
  if (f) fclose(f);
  if (!n) return rl_error("[compile] cannot write generated code in %s: %s", folder, strerror(e));
  return rl_error("[compile] the C compiler refused generated code; got %s", text);
}

static void temp_name(char *out, size_t n, const char *folder, const char *key, const char *ext) {
  static int serial;
  snprintf(out, n, "%s/%s.%d.%d.%s", folder, key, (int)getpid(), __sync_fetch_and_add(&serial, 1), ext);
}

static bool seal(const char *so, const char *key) {
  FILE *f = fopen(so, "ab");
  if (!f) return false;
  bool ok = fputs(key, f) >= 0;
  return fclose(f) == 0 && ok;
}

static bool is_sealed(const char *place, const char *key) {
  char end[40] = { 0 };
  long n = (long)strlen(key);
  FILE *f = fopen(place, "rb");
  if (!f) return false;
  bool ok = !fseek(f, -n, SEEK_END) && fread(end, 1, (size_t)n, f) == (size_t)n && !strcmp(end, key);
  fclose(f);
  return ok;
}

/* Kernels begin with a form feed. */
static int count_kernels(const char *source) {
  int n = 0;
  for (const char *p = source; (p = strchr(p, '\f')); p++) n++;
  return n;
}

/* How many units: the processors', when there is enough for each. */
static int count_parts(const char *source) {
  int64_t parts = RL_MIN(count_kernels(source) / PART_KERNELS, (int64_t)strlen(source) / PART_BYTES);
  return (int)RL_MAX(1, RL_MIN(RL_MIN(parts, sysconf(_SC_NPROCESSORS_ONLN)), PARTS_MAX));
}

typedef struct unit {
  char c[1024], o[1024];
  pid_t pid;
} unit;

/* Source cut at kernels into parts of about one length, all compiled at once; then linked. */
static bool compile_parts(const char *source, const char *folder, const char *key, const char *so, const char *log, unit *u, int parts) {
  const char *head = strchr(source, '\f'), *at = head, *object[PARTS_MAX];
  size_t nhead = (size_t)(head - source), total = strlen(head);
  bool ok = true;
  for (int i = 0; i < parts; i++) {
    const char *end = i + 1 < parts ? strchr(head + total * (size_t)(i + 1) / (size_t)parts, '\f') : NULL;
    if (!end) end = head + total;
    temp_name(u[i].c, sizeof u[i].c, folder, key, "c");
    temp_name(u[i].o, sizeof u[i].o, folder, key, "o");
    object[i] = u[i].o;
    const char *in[] = { u[i].c };
    bool written = write_source(u[i].c, i ? NULL : key, source, nhead, at, (size_t)(end - at));
    if (!written || !start_compiler("-c", in, 1, u[i].o, log, &u[i].pid)) ok = false, u[i].pid = 0;
    at = end;
  }
  for (int i = 0; i < parts; i++) ok = u[i].pid && wait_compiler(u[i].pid) && ok;
  return ok && run_compiler("-shared", object, parts, so, log);
}

static bool compile_whole(const char *source, const char *folder, const char *key, const char *so, const char *log, unit *u) {
  const char *in[] = { u->c };
  temp_name(u->c, sizeof u->c, folder, key, "c");
  *u->o = 0;
  return write_source(u->c, key, "", 0, source, strlen(source)) && run_compiler("-shared", in, 1, so, log);
}

static rl_status compile(const char *source, const char *folder, const char *key, const char *place) {
  char so[1024], log[1024];
  int parts = count_parts(source);
  unit *u = calloc((size_t)parts, sizeof *u);
  rl_status s = RL_OK;
  if (!u) return rl_error_status(RL_OOM, "[compile] out of memory");
  temp_name(so, sizeof so, folder, key, "so");
  temp_name(log, sizeof log, folder, key, "log");
  bool ok = parts > 1 ? compile_parts(source, folder, key, so, log, u, parts) : compile_whole(source, folder, key, so, log, u);
  if (!ok) s = log_error(log, folder);
  else if (!seal(so, key) || rename(so, place)) s = rl_error("[compile] cannot write %s: %s", place, strerror(errno));
  for (int i = 0; i < parts; i++) {
    unlink(u[i].c);
    if (*u[i].o) unlink(u[i].o);
  }
  free(u);
  unlink(log);
  if (s != RL_OK) unlink(so);
  return s;
}

static void *open_checked(const char *place, const char *key) {
  if (!is_sealed(place, key)) return NULL;
  void *h = dlopen(place, RTLD_NOW | RTLD_LOCAL);
  if (!h) return NULL;
  const char *own = dlsym(h, "rl_key");
  if (own && !strcmp(own, key)) return h;
  dlclose(h);
  return NULL;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- libraries of this process ---- */

/* A library that is loaded, or that one thread builds while the others that need it wait. It stays: plans share it. */
typedef struct library {
  struct library *next;
  char key[40];
  void *handle;
  bool busy;
} library;
static library *libraries[256];
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t library_done = PTHREAD_COND_INITIALIZER;

/* The library of a key: loaded, or this thread's to build and to settle. NULL when memory is out. */
static library *claim(const char *key) {
  library **head = &libraries[(unsigned char)key[0] * 31u % 256u ^ (unsigned char)key[15]];
  pthread_mutex_lock(&library_lock);
  library *l = *head;
  while (l && strcmp(l->key, key)) l = l->next;
  while (l && l->busy) pthread_cond_wait(&library_done, &library_lock);
  if (!l && (l = calloc(1, sizeof *l))) {
    memcpy(l->key, key, sizeof l->key);
    l->next = *head;
    *head = l;
  }
  if (l && !l->handle) l->busy = true;
  pthread_mutex_unlock(&library_lock);
  return l;
}

static void settle(library *l, void *handle) {
  pthread_mutex_lock(&library_lock);
  l->handle = handle;
  l->busy = false;
  pthread_cond_broadcast(&library_done);
  pthread_mutex_unlock(&library_lock);
}

/* From the folder, or built. */
static rl_status obtain(const char *source, const char *folder, const char *key, rl_built *out) {
  snprintf(out->path, sizeof out->path, "%s/%s.so", folder, key);
  if (access(out->path, R_OK) == 0) out->handle = open_checked(out->path, key);
  if (!out->handle) {
    out->from_cache = false;
    unlink(out->path);
    RL_TRY(compile(source, folder, key, out->path));
    out->handle = open_checked(out->path, key);
    if (!out->handle) return rl_error("[compile] cannot load %s: %s", out->path, dlerror());
  }
  return RL_OK;
}

rl_status rl_build(const char *source, rl_built *out) {
  char folder[400], key[40];
  memset(out, 0, sizeof *out);
  if (!compiler()) return rl_error("[compile] no C compiler; looked for cc, gcc and clang on the path");
  if (!rl_build_folder(folder, sizeof folder)) return rl_error("[compile] no folder to cache kernels in; set RELUME_CACHE");
  make_key(source, key);
  double start = seconds();
  out->from_cache = true;
  library *l = claim(key);
  if (!l) return rl_error_status(RL_OOM, "[compile] out of memory");
  rl_status s = RL_OK;
  if (l->handle) out->handle = l->handle;
  else settle(l, (s = obtain(source, folder, key, out)) == RL_OK ? out->handle : NULL);
  out->seconds = seconds() - start;
  return s;
}

void *rl_build_symbol(const rl_built *b, const char *name) { return dlsym(b->handle, name); }

char *rl_build_assembly(const char *source) {
  char folder[400], key[40], c[1024], s[1024], log[1024];
  if (!compiler() || !rl_build_folder(folder, sizeof folder)) return NULL;
  make_key(source, key);
  temp_name(c, sizeof c, folder, key, "c");
  temp_name(s, sizeof s, folder, key, "s");
  temp_name(log, sizeof log, folder, key, "log");
  char *text = NULL;
  const char *in[] = { c };
  if (write_source(c, key, "", 0, source, strlen(source)) && run_compiler("-S", in, 1, s, log)) {
    FILE *f = fopen(s, "r");
    if (f && !fseek(f, 0, SEEK_END)) {
      long n = ftell(f);
      rewind(f);
      if (n >= 0 && (text = malloc((size_t)n + 1))) text[fread(text, 1, (size_t)n, f)] = 0;
    }
    if (f) fclose(f);
  }
  unlink(c);
  unlink(s);
  unlink(log);
  return text;
}
