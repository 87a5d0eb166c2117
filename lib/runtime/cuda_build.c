/* CUDA kernels: source -> machine code of the current device -> entry, kept in memory and on disk.
 * On disk: <cache>/<hash of source and architecture>.cubin, written beside and renamed. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../codegen/build.h"
#include "cuda_impl.h"

#define BUCKETS 1024
struct rl_cuda_fn {
  struct rl_cuda_fn *next;
  int dev;
  void *fn;
  char key[];
};
static rl_cuda_fn *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash(const char *s, uint64_t h) {
  for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
  return h;
}

rl_cuda_fn *rl_cuda_find(const char *key) {
  int dev = rl_cuda_device();
  rl_cuda_fn *f = table[hash(key, 0xcbf29ce484222325u) % BUCKETS];
  while (f && (f->dev != dev || strcmp(f->key, key))) f = f->next;
  return f;
}

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  char *p = n > 64 ? malloc((size_t)n) : NULL;
  if (p && fread(p, 1, (size_t)n, f) != (size_t)n) {
    free(p);
    p = NULL;
  }
  fclose(f);
  return p;
}

static void write_file(const char *path, const char *p, size_t n) {
  char tmp[1200];
  snprintf(tmp, sizeof tmp, "%s.%d", path, (int)getpid());
  FILE *f = fopen(tmp, "wb");
  if (!f) return;
  bool ok = fwrite(p, 1, n, f) == n;
  ok = fclose(f) == 0 && ok;
  if (!ok || rename(tmp, path)) remove(tmp);
}

/* Machine code for the current device. */
static char *image_of(const char *src) {
  char arch[16], folder[1024], path[1100];
  char *image = NULL;
  size_t bytes = 0;
  snprintf(arch, sizeof arch, "sm_%d", cuda_cc());
  bool disk = rl_build_folder(folder, sizeof folder);
  snprintf(path, sizeof path, "%s/%016llx%016llx.cubin", folder, (unsigned long long)hash(src, hash(arch, 0xcbf29ce484222325u)),
           (unsigned long long)hash(src, hash(arch, 0x84222325cbf29ce4u)));
  if (disk && (image = read_file(path))) return image;
  if (rl_cuda_compile(src, arch, &image, &bytes) != RL_OK) return NULL;
  if (disk) write_file(path, image, bytes);
  return image;
}

/* Modules by their text: entries of one text share the loaded code. */
typedef struct module {
  struct module *next;
  uint64_t key;
  int dev;
  void *module;
} module;
static module *modules;

static void *module_of(const char *src) {
  uint64_t key = hash(src, hash("module", 0xcbf29ce484222325u));
  int dev = rl_cuda_device();
  void *loaded = NULL;
  for (module *m = modules; m; m = m->next)
    if (m->key == key && m->dev == dev) return m->module;
  char *image = image_of(src);
  rl_status s = image ? cuda_load_module(image, &loaded) : RL_ERR;
  free(image);
  module *m = s == RL_OK ? malloc(sizeof *m) : NULL;
  if (!m) return NULL;
  *m = (module){ modules, key, dev, loaded };
  pthread_mutex_lock(&lock);
  m->next = modules;
  modules = m;
  pthread_mutex_unlock(&lock);
  return loaded;
}

rl_cuda_fn *rl_cuda_kernel(const char *key, const char *src, const char *entry) {
  void *fn = NULL;
  if (rl_cuda_need() != RL_OK) return NULL;
  void *m = module_of(src);
  rl_status s = m ? cuda_entry(m, entry, &fn) : RL_ERR;
  rl_cuda_fn *f = s == RL_OK ? malloc(sizeof *f + strlen(key) + 1) : NULL;
  if (!f) return NULL;
  f->dev = rl_cuda_device();
  f->fn = fn;
  strcpy(f->key, key);
  pthread_mutex_lock(&lock);
  rl_cuda_fn **b = &table[hash(key, 0xcbf29ce484222325u) % BUCKETS];
  f->next = *b;
  *b = f;
  pthread_mutex_unlock(&lock);
  return f;
}

rl_status rl_cuda_launch(rl_cuda_fn *f, const char *op, int64_t blocks, int threads, void **args) {
  return cuda_start(f->fn, op, RL_MIN(RL_MAX(blocks, 1), 2147483647), 1, threads, args);
}
rl_status rl_cuda_launch2(rl_cuda_fn *f, const char *op, int64_t blocks, int64_t columns, int threads, void **args) {
  return cuda_start(f->fn, op, RL_MIN(RL_MAX(blocks, 1), 2147483647), RL_MIN(RL_MAX(columns, 1), 65535), threads, args);
}
