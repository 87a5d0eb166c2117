/* Operating system: clock, files and folders, threads; what paths, sys and torch need beside Lua's own libraries.
 * POSIX calls -> Lua values. */
#define _GNU_SOURCE
#include "bind.h"
#include <dirent.h>
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Seconds of wall time, monotonic. */
static int os_clock(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + (lua_Number)t.tv_nsec * 1e-9);
  return 1;
}

/* Seconds since 1970, with a fraction. */
static int os_now(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + (lua_Number)t.tv_nsec * 1e-9);
  return 1;
}

/* User and system seconds of this process. */
static int os_cpu_times(lua_State *L) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  lua_pushnumber(L, (lua_Number)r.ru_utime.tv_sec + (lua_Number)r.ru_utime.tv_usec * 1e-6);
  lua_pushnumber(L, (lua_Number)r.ru_stime.tv_sec + (lua_Number)r.ru_stime.tv_usec * 1e-6);
  return 2;
}

static int os_sleep(lua_State *L) {
  double s = luaL_checknumber(L, 1);
  struct timespec t = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };
  if (s > 0) nanosleep(&t, NULL);
  return 0;
}

static int os_isatty(lua_State *L) {
  lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
  return 1;
}

static int os_error(lua_State *L, const char *what) {
  int e = errno;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", what, strerror(e));
  return 2;
}

/* C.stat(path) -> 'file' | 'directory' | 'other', size, mtime; nil when there is none. */
static int os_stat(lua_State *L) {
  struct stat st;
  if (stat(luaL_checkstring(L, 1), &st) != 0) return os_error(L, lua_tostring(L, 1));
  lua_pushstring(L, S_ISREG(st.st_mode) ? "file" : S_ISDIR(st.st_mode) ? "directory" : "other");
  lua_pushnumber(L, (lua_Number)st.st_size);
  lua_pushnumber(L, (lua_Number)st.st_mtime);
  return 3;
}

/* C.readdir(path) -> {names}, unsorted, with . and .. */
static int os_readdir(lua_State *L) {
  DIR *d = opendir(luaL_checkstring(L, 1));
  struct dirent *e;
  int n = 0;
  if (!d) return os_error(L, lua_tostring(L, 1));
  lua_newtable(L);
  while ((e = readdir(d))) {
    lua_pushstring(L, e->d_name);
    lua_rawseti(L, -2, ++n);
  }
  closedir(d);
  return 1;
}

static int os_result(lua_State *L, int rc) {
  if (rc != 0) return os_error(L, lua_tostring(L, 1));
  lua_pushboolean(L, true);
  return 1;
}

static int os_mkdir(lua_State *L) { return os_result(L, mkdir(luaL_checkstring(L, 1), 0777)); }
static int os_rmdir(lua_State *L) { return os_result(L, rmdir(luaL_checkstring(L, 1))); }
static int os_chdir(lua_State *L) { return os_result(L, chdir(luaL_checkstring(L, 1))); }

static int os_cwd(lua_State *L) {
  char *p = getcwd(NULL, 0);
  if (!p) return os_error(L, "getcwd");
  lua_pushstring(L, p);
  free(p);
  return 1;
}

static int os_realpath(lua_State *L) {
  char *p = realpath(luaL_checkstring(L, 1), NULL);
  if (!p) return os_error(L, lua_tostring(L, 1));
  lua_pushstring(L, p);
  free(p);
  return 1;
}

/* C.uname() -> system, node, machine, release */
static int os_uname(lua_State *L) {
  struct utsname u;
  if (uname(&u) != 0) return os_error(L, "uname");
  lua_pushstring(L, u.sysname);
  lua_pushstring(L, u.nodename);
  lua_pushstring(L, u.machine);
  lua_pushstring(L, u.release);
  return 4;
}

static int get_threads(lua_State *L) {
  lua_pushinteger(L, omp_get_max_threads());
  return 1;
}

/* torch.setnumthreads(n): threads of the kernels and of the matrix library, which share one pool. */
static int set_threads(lua_State *L) {
  int n = (int)bind_int(L, 1);
  if (n < 1) return bind_argerror(L, 1, "1 or more");
  omp_set_num_threads(n);
  return 0;
}

static int get_cores(lua_State *L) {
  lua_pushinteger(L, omp_get_num_procs());
  return 1;
}

static const bind_reg core[] = { { "clock", os_clock },
                                 { "now", os_now },
                                 { "cpuTimes", os_cpu_times },
                                 { "sleep", os_sleep },
                                 { "isatty", os_isatty },
                                 { "stat", os_stat },
                                 { "readdir", os_readdir },
                                 { "mkdir", os_mkdir },
                                 { "rmdir", os_rmdir },
                                 { "chdir", os_chdir },
                                 { "cwd", os_cwd },
                                 { "realpath", os_realpath },
                                 { "uname", os_uname },
                                 { "getNumThreads", get_threads },
                                 { "setNumThreads", set_threads },
                                 { "getNumCores", get_cores },
                                 { NULL, NULL } };

void bind_open_os(lua_State *L) {
  int n = rl_env_int(RL_ENV_THREADS);
  if (n > 0) omp_set_num_threads(n);
  bind_core(L, core);
}
