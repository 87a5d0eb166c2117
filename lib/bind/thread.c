/* Threads: OS threads with a Lua state each, and what they share: mutexes, conditions, channels of storages (Lua <-> pthreads).
 *
 * What is shared is counted, lies in one list, and is known in every state by a number: the address. A message of a channel is a storage with
 * one reference, so its bytes move between states without a copy. */
#include "bind.h"
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUTEX, CONDITION, CHANNEL, KINDS };
static const char *const kind_names[] = { "relume.Mutex", "relume.Condition", "relume.Channel" };

/* A first-in-first-out list of messages. */
typedef struct lane {
  rl_storage **item;
  int first, count;
} lane;

typedef struct shared {
  struct shared *next;
  int kind, refs;
  pthread_mutex_t mutex;
  pthread_cond_t cond; /* of a channel: something changed */
  int lanes, size;
  bool closed;
  lane lane[];
} shared;

static shared *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- shared objects ---- */

static void shared_free(shared *s) {
  for (int i = 0; i < s->lanes; i++) {
    lane *l = &s->lane[i];
    for (int k = 0; k < l->count; k++) rl_storage_release(l->item[(l->first + k) % s->size]);
    free(l->item);
  }
  pthread_mutex_destroy(&s->mutex);
  pthread_cond_destroy(&s->cond);
  free(s);
}

static void shared_release(shared *s) {
  pthread_mutex_lock(&all_lock);
  bool last = --s->refs == 0;
  shared **p = &all;
  while (last && *p != s) p = &(*p)->next;
  if (last) *p = s->next;
  pthread_mutex_unlock(&all_lock);
  if (last) shared_free(s);
}

static shared *shared_new(int kind, int lanes, int size) {
  shared *s = calloc(1, sizeof *s + sizeof(lane) * (size_t)lanes);
  if (!s) return NULL;
  s->kind = kind;
  s->refs = 1;
  s->size = size;
  pthread_mutex_init(&s->mutex, NULL);
  pthread_cond_init(&s->cond, NULL);
  for (; s->lanes < lanes; s->lanes++) {
    if ((s->lane[s->lanes].item = calloc((size_t)size, sizeof(rl_storage *)))) continue;
    shared_free(s);
    return NULL;
  }
  pthread_mutex_lock(&all_lock);
  s->next = all;
  all = s;
  pthread_mutex_unlock(&all_lock);
  return s;
}

/* The object of a number, with a new reference; NULL when there is none of this kind. */
static shared *shared_find(int kind, double id) {
  pthread_mutex_lock(&all_lock);
  shared *s = all;
  while (s && !((double)(uintptr_t)s == id && s->kind == kind)) s = s->next;
  if (s) s->refs++;
  pthread_mutex_unlock(&all_lock);
  return s;
}

static int push_shared(lua_State *L, int kind, shared *s) {
  shared **box = (shared **)lua_newuserdata(L, sizeof *box);
  *box = s;
  luaL_getmetatable(L, kind_names[kind]);
  lua_setmetatable(L, -2);
  return 1;
}

static shared *shared_at(lua_State *L, int i, int kind) {
  shared *s = *(shared **)luaL_checkudata(L, i, kind_names[kind]);
  if (!s) luaL_error(L, "[threads] %s; got one that was freed", kind_names[kind] + 7);
  return s;
}

static int attach(lua_State *L, int kind) {
  shared *s = shared_find(kind, luaL_checknumber(L, 1));
  if (!s) return luaL_error(L, "[threads] id; got %f, need that of a %s which is alive", lua_tonumber(L, 1), kind_names[kind] + 7);
  return push_shared(L, kind, s);
}

static int new_plain(lua_State *L, int kind) {
  if (!lua_isnoneornil(L, 1)) return attach(L, kind);
  shared *s = shared_new(kind, 0, 0);
  return s ? push_shared(L, kind, s) : luaL_error(L, "[threads] out of memory");
}

static int new_mutex(lua_State *L) { return new_plain(L, MUTEX); }
static int new_condition(lua_State *L) { return new_plain(L, CONDITION); }

static int shared_gc(lua_State *L) {
  shared **box = (shared **)lua_touserdata(L, 1);
  if (box && *box) shared_release(*box);
  if (box) *box = NULL;
  return 0;
}

static int shared_id(lua_State *L) {
  shared **box = (shared **)lua_touserdata(L, 1);
  luaL_argcheck(L, box && *box, 1, "freed");
  lua_pushnumber(L, (lua_Number)(uintptr_t)*box);
  return 1;
}

/* ---- mutex and condition ---- */

static int mutex_lock(lua_State *L) {
  pthread_mutex_lock(&shared_at(L, 1, MUTEX)->mutex);
  return 0;
}

static int mutex_unlock(lua_State *L) {
  pthread_mutex_unlock(&shared_at(L, 1, MUTEX)->mutex);
  return 0;
}

static int condition_wait(lua_State *L) {
  shared *c = shared_at(L, 1, CONDITION);
  pthread_cond_wait(&c->cond, &shared_at(L, 2, MUTEX)->mutex);
  return 0;
}

static int condition_signal(lua_State *L) {
  pthread_cond_signal(&shared_at(L, 1, CONDITION)->cond);
  return 0;
}

/* ---- channel ---- */

/* C.channel(size, lanes) or C.channel(id): `lanes` lists, numbered from 0, of at most `size` messages each. */
static int new_channel(lua_State *L) {
  if (lua_gettop(L) < 2) return attach(L, CHANNEL);
  double size = luaL_checknumber(L, 1), lanes = luaL_checknumber(L, 2);
  luaL_argcheck(L, size >= 1 && size < 1e6, 1, "number of messages, 1 or more");
  luaL_argcheck(L, lanes >= 1 && lanes < 1e5, 2, "number of lanes, 1 or more");
  shared *s = shared_new(CHANNEL, (int)lanes, (int)size);
  return s ? push_shared(L, CHANNEL, s) : luaL_error(L, "[threads] out of memory");
}

static lane *lane_at(lua_State *L, shared *s, int i) {
  double k = luaL_optnumber(L, i, 0);
  if (!(k >= 0 && k < s->lanes)) luaL_error(L, "[threads] lane; got %f, need 0 to %d", k, s->lanes - 1);
  return &s->lane[(int)k];
}

/* c:push(storage [, lane]) -> true; waits while the lane is full; false when the channel is closed. */
static int channel_push(lua_State *L) {
  shared *s = shared_at(L, 1, CHANNEL);
  rl_storage *message = bind_storage(L, 2);
  lane *l = lane_at(L, s, 3);
  pthread_mutex_lock(&s->mutex);
  while (!s->closed && l->count == s->size) pthread_cond_wait(&s->cond, &s->mutex);
  bool ok = !s->closed;
  if (ok) l->item[(l->first + l->count++) % s->size] = rl_storage_retain(message);
  pthread_cond_broadcast(&s->cond);
  pthread_mutex_unlock(&s->mutex);
  lua_pushboolean(L, ok);
  return 1;
}

static rl_storage *take(shared *s, lane *l) {
  rl_storage *m = l->item[l->first];
  l->first = (l->first + 1) % s->size;
  l->count--;
  return m;
}

/* c:pop([lane]) -> storage, from this lane first, else from lane 0; waits for one; nil when the channel is closed. */
static int channel_pop(lua_State *L) {
  shared *s = shared_at(L, 1, CHANNEL);
  lane *own = lane_at(L, s, 2), *common = &s->lane[0];
  pthread_mutex_lock(&s->mutex);
  while (!s->closed && !own->count && !common->count) pthread_cond_wait(&s->cond, &s->mutex);
  rl_storage *m = s->closed ? NULL : take(s, own->count ? own : common);
  pthread_cond_broadcast(&s->cond);
  pthread_mutex_unlock(&s->mutex);
  if (!m) return 0;
  return bind_push_storage(L, m);
}

/* c:isFull([lane]) */
static int channel_is_full(lua_State *L) {
  shared *s = shared_at(L, 1, CHANNEL);
  lane *l = lane_at(L, s, 2);
  pthread_mutex_lock(&s->mutex);
  lua_pushboolean(L, l->count == s->size);
  pthread_mutex_unlock(&s->mutex);
  return 1;
}

/* c:isEmpty([lane]) */
static int channel_is_empty(lua_State *L) {
  shared *s = shared_at(L, 1, CHANNEL);
  lane *l = lane_at(L, s, 2);
  pthread_mutex_lock(&s->mutex);
  lua_pushboolean(L, l->count == 0);
  pthread_mutex_unlock(&s->mutex);
  return 1;
}

static void close_channel(shared *s) {
  pthread_mutex_lock(&s->mutex);
  s->closed = true;
  pthread_cond_broadcast(&s->cond);
  pthread_mutex_unlock(&s->mutex);
}

/* c:close(): whoever waits gets nothing; messages that were not taken are dropped with the channel. */
static int channel_close(lua_State *L) {
  close_channel(shared_at(L, 1, CHANNEL));
  return 0;
}

/* ---- threads ---- */

#define BIND_THREAD "relume.Thread"

/* What a new thread gets: its program and a copy of the arguments. */
typedef struct start {
  char *code;
  shared *alarm; /* closed when the program fails */
  int n;
  struct {
    int type;
    double number;
    char *text;
    size_t len;
  } arg[];
} start;

typedef struct thread {
  pthread_t id;
  bool running;
} thread;

static void start_free(start *s) {
  for (int i = 0; i < s->n; i++) free(s->arg[i].text);
  free(s->code);
  free(s);
}

static int traceback(lua_State *L) {
  lua_getglobal(L, "debug");
  lua_getfield(L, -1, "traceback");
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

static void push_arguments(lua_State *L, const start *s) {
  luaL_checkstack(L, s->n, "too many arguments");
  for (int i = 0; i < s->n; i++) {
    if (s->arg[i].type == LUA_TNUMBER) lua_pushnumber(L, s->arg[i].number);
    else lua_pushlstring(L, s->arg[i].text, s->arg[i].len);
  }
}

static void *thread_main(void *p) {
  start *s = (start *)p;
  lua_State *L = luaL_newstate();
  const char *why = "out of memory";
  bool ok = false;
  if (L) {
    luaL_openlibs(L);
    lua_pushcfunction(L, traceback);
    ok = luaL_loadbuffer(L, s->code, strlen(s->code), "=thread") == 0;
    if (ok) {
      push_arguments(L, s);
      ok = lua_pcall(L, s->n, 0, 1) == 0;
    }
    if (!ok && !(why = lua_tostring(L, -1))) why = "an error that is no string";
  }
  if (!ok) fprintf(stderr, "[threads] a thread ends: %s\n", why);
  if (!ok && s->alarm) close_channel(s->alarm);
  if (s->alarm) shared_release(s->alarm);
  if (L) lua_close(L);
  start_free(s);
  return NULL;
}

static bool copy_argument(lua_State *L, int i, start *s) {
  int k = s->n++;
  s->arg[k].type = lua_type(L, i);
  if (s->arg[k].type == LUA_TNUMBER) {
    s->arg[k].number = lua_tonumber(L, i);
    return true;
  }
  const char *text = lua_tolstring(L, i, &s->arg[k].len);
  s->arg[k].text = text ? malloc(s->arg[k].len + 1) : NULL;
  if (s->arg[k].text) memcpy(s->arg[k].text, text, s->arg[k].len + 1);
  return s->arg[k].text != NULL;
}

/* C.thread(code, alarm or nil, ...) -> thread: runs Lua text in a new state of a new OS thread. The arguments are numbers and strings. */
static int thread_new(lua_State *L) {
  const char *code = luaL_checkstring(L, 1);
  shared *alarm = lua_isnoneornil(L, 2) ? NULL : shared_at(L, 2, CHANNEL);
  int n = RL_MAX(lua_gettop(L) - 2, 0);
  for (int i = 3; i < n + 3; i++)
    if (lua_type(L, i) != LUA_TNUMBER && lua_type(L, i) != LUA_TSTRING) return bind_argerror(L, i, "number or string");
  start *s = calloc(1, sizeof *s + sizeof s->arg[0] * (size_t)n);
  bool ok = s && (s->code = strdup(code));
  for (int i = 3; ok && i < n + 3; i++) ok = copy_argument(L, i, s);
  if (!ok) {
    if (s) start_free(s);
    return luaL_error(L, "[threads] out of memory");
  }
  if (alarm) s->alarm = shared_find(CHANNEL, (double)(uintptr_t)alarm);
  thread *t = (thread *)lua_newuserdata(L, sizeof *t);
  t->running = false;
  luaL_getmetatable(L, BIND_THREAD);
  lua_setmetatable(L, -2);
  if (pthread_create(&t->id, NULL, thread_main, s)) {
    if (s->alarm) shared_release(s->alarm);
    start_free(s);
    return luaL_error(L, "[threads] the system makes no more threads");
  }
  t->running = true;
  return 1;
}

/* t:free() waits for the thread's end. */
static int thread_free(lua_State *L) {
  thread *t = (thread *)luaL_checkudata(L, 1, BIND_THREAD);
  if (t->running) pthread_join(t->id, NULL);
  t->running = false;
  return 0;
}

/* ---- storages between states ---- */

/* C.storageSend(s) -> address, with a reference that the one who receives it takes over. */
static int storage_send(lua_State *L) {
  rl_storage *s = bind_storage(L, 1);
  bind_real(L, s, "threads");
  lua_pushnumber(L, (lua_Number)(uintptr_t)rl_storage_retain(s));
  return 1;
}

/* C.storageReceive(s, address): s, made empty by its type's constructor, is that storage from now on. */
static int storage_receive(lua_State *L) {
  rl_storage *own = bind_storage(L, 1), *s = (rl_storage *)(uintptr_t)luaL_checknumber(L, 2);
  bind_box *b = (bind_box *)lua_touserdata(L, 1);
  luaL_argcheck(L, s && s->dtype == own->dtype && s->device == own->device, 2, "address of a storage of this type");
  b->p = s;
  rl_storage_release(own);
  lua_settop(L, 1);
  return 1;
}

/* C.atomicAdd(LongStorage, i, n) -> the element's new value, in one step for all threads. */
static int atomic_add(lua_State *L) {
  rl_storage *s = bind_storage(L, 1);
  int64_t i = bind_int(L, 2);
  luaL_argcheck(L, s->dtype == RL_I64 && s->device == RL_CPU && s->data, 1, "LongStorage");
  luaL_argcheck(L, i >= 1 && i <= s->size, 2, "index of an element");
  lua_pushnumber(L, (lua_Number)__atomic_add_fetch((int64_t *)s->data + i - 1, bind_int(L, 3), __ATOMIC_SEQ_CST));
  return 1;
}

static void metatable(lua_State *L, const char *name, const luaL_Reg *methods) {
  luaL_newmetatable(L, name);
  luaL_register(L, NULL, methods);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}

/* Adds threads and what they share to the core table. */
void bind_open_thread(lua_State *L) {
  static const luaL_Reg mutex[] = { { "lock", mutex_lock }, { "unlock", mutex_unlock }, { "id", shared_id },
                                    { "free", shared_gc },  { "__gc", shared_gc },      { NULL, NULL } };
  static const luaL_Reg condition[] = { { "wait", condition_wait }, { "signal", condition_signal }, { "id", shared_id },
                                        { "free", shared_gc },      { "__gc", shared_gc },          { NULL, NULL } };
  static const luaL_Reg channel[] = { { "push", channel_push },        { "pop", channel_pop },     { "isFull", channel_is_full },
                                      { "isEmpty", channel_is_empty }, { "close", channel_close }, { "id", shared_id },
                                      { "free", shared_gc },           { "__gc", shared_gc },      { NULL, NULL } };
  static const luaL_Reg thread_methods[] = { { "free", thread_free }, { "__gc", thread_free }, { NULL, NULL } };
  static const bind_reg core[] = { { "mutex", new_mutex },          { "condition", new_condition },
                                   { "channel", new_channel },      { "thread", thread_new },
                                   { "storageSend", storage_send }, { "storageReceive", storage_receive },
                                   { "atomicAdd", atomic_add },     { NULL, NULL } };
  metatable(L, kind_names[MUTEX], mutex);
  metatable(L, kind_names[CONDITION], condition);
  metatable(L, kind_names[CHANNEL], channel);
  metatable(L, BIND_THREAD, thread_methods);
  bind_core(L, core);
}
