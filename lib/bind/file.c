/* Files: torch.DiskFile, MemoryFile and PipeFile, binary and ascii (Lua <-> bytes).
 * Typed reads and writes of numbers and storages; objects are lua/torch/serialize.lua's. Numbers in ascii are separated by blanks, a
 * write ends with a newline; Byte and Char are raw bytes in both forms. */
#include "bind.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F_DISK, F_MEMORY, F_PIPE };
static const char file_tag = 'f';
static const char *const type_names[] = { "torch.DiskFile", "torch.MemoryFile", "torch.PipeFile" };

typedef struct bind_file {
  const char *tag;
  int kind, long_size;
  FILE *h;
  rl_storage *mem; /* memory: capacity; len bytes are the contents */
  int64_t pos, len;
  bool open, readable, writable, binary, quiet, spacing, error, referenced, swap;
  char *name;
} bind_file;

static bind_file *self(lua_State *L) {
  bind_file *f = (bind_file *)lua_touserdata(L, 1);
  if (!f || lua_objlen(L, 1) != sizeof *f || f->tag != &file_tag) bind_argerror(L, 1, "file");
  if (!f->open) luaL_error(L, "[file] closed file; got one that was closed, need an open one");
  return f;
}

/* Failure: an error, or in quiet mode a flag. */
static int fail(lua_State *L, bind_file *f, const char *what) {
  f->error = true;
  if (!f->quiet)
    luaL_error(L, "[file] %s in %s; got position %d", what, f->name,
               (int)(f->kind == F_MEMORY         ? f->pos + 1
                     : f->h && f->kind == F_DISK ? ftello(f->h) + 1
                                                 : 0));
  return 0;
}

/* Bytes -------------------------------------------------------------------------------------------------------------------------- */

static int64_t get_bytes(bind_file *f, void *p, int64_t n) {
  if (n <= 0) return 0;
  if (f->kind != F_MEMORY) return (int64_t)fread(p, 1, (size_t)n, f->h);
  n = RL_MIN(n, RL_MIN(f->len, f->mem->size) - f->pos); /* the program may have shrunk the storage */
  if (n <= 0) return 0;
  memcpy(p, (char *)f->mem->data + f->pos, (size_t)n);
  f->pos += n;
  return n;
}

static int get_char(bind_file *f) {
  if (f->kind != F_MEMORY) return getc(f->h);
  return f->pos < RL_MIN(f->len, f->mem->size) ? ((unsigned char *)f->mem->data)[f->pos++] : EOF;
}

static void unget(bind_file *f, int c) {
  if (c == EOF) return;
  if (f->kind != F_MEMORY) ungetc(c, f->h);
  else f->pos--;
}

static bool put_bytes(bind_file *f, const void *p, int64_t n) {
  if (n <= 0) return true;
  if (f->kind != F_MEMORY) return fwrite(p, 1, (size_t)n, f->h) == (size_t)n;
  if (f->pos + n > f->mem->size && rl_storage_resize(f->mem, RL_MAX(f->mem->size * 2, f->pos + n + 64)) != RL_OK) return false;
  memcpy((char *)f->mem->data + f->pos, p, (size_t)n);
  f->pos += n;
  f->len = RL_MAX(f->len, f->pos);
  return true;
}

static void swap_bytes(char *p, int64_t n, int size) {
  for (int64_t i = 0; i < n; i++, p += size)
    for (int a = 0, b = size - 1; a < b; a++, b--) {
      char c = p[a];
      p[a] = p[b];
      p[b] = c;
    }
}

/* Typed blocks ------------------------------------------------------------------------------------------------------------------- */

static bool read_token(bind_file *f, char *buf, int cap) {
  int c, n = 0;
  do c = get_char(f);
  while (c != EOF && isspace(c));
  for (; c != EOF && !isspace(c) && n < cap - 1; c = get_char(f)) buf[n++] = (char)c;
  buf[n] = 0;
  unget(f, c);
  return n > 0;
}

static bool read_ascii_one(bind_file *f, rl_dtype dt, char *p) {
  char buf[128], *end;
  if (!read_token(f, buf, sizeof buf)) return false;
  if (dt == RL_I64) {
    int64_t v = strtoll(buf, &end, 10);
    memcpy(p, &v, 8);
  } else bind_store_as(dt, p, strtod(buf, &end));
  return *end == 0;
}

static int64_t read_ascii(bind_file *f, rl_dtype dt, char *p, int64_t n) {
  int64_t k = 0;
  int bytes = rl_dtypes[dt].bytes;
  if (bytes == 1) k = get_bytes(f, p, n);
  else
    while (k < n && read_ascii_one(f, dt, p + k * bytes)) k++;
  if (f->spacing && n > 0) {
    int c = get_char(f);
    if (c != '\n') unget(f, c);
  }
  return k;
}

static int64_t read_long4(bind_file *f, int64_t *p, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    int32_t v;
    if (get_bytes(f, &v, 4) != 4) return k;
    if (f->swap) swap_bytes((char *)&v, 1, 4);
    p[k] = v;
  }
  return n;
}

/* Reads up to n elements; returns how many came whole. */
static int64_t read_block(bind_file *f, rl_dtype dt, void *p, int64_t n) {
  int bytes = rl_dtypes[dt].bytes;
  if (!f->binary) return read_ascii(f, dt, (char *)p, n);
  if (dt == RL_I64 && f->long_size == 4) return read_long4(f, (int64_t *)p, n);
  int64_t k = get_bytes(f, p, n * bytes) / bytes;
  if (f->swap && bytes > 1) swap_bytes((char *)p, k, bytes);
  return k;
}

static int print_one(char *buf, size_t cap, rl_dtype dt, const char *p) {
  int64_t v;
  if (dt == RL_I64) {
    memcpy(&v, p, 8);
    return snprintf(buf, cap, "%" PRId64, v);
  }
  if (dt == RL_F64) return snprintf(buf, cap, "%.17g", bind_load_as(dt, p));
  return snprintf(buf, cap, "%.9g", bind_load_as(dt, p));
}

static bool write_ascii(bind_file *f, rl_dtype dt, const char *p, int64_t n) {
  char buf[64];
  int bytes = rl_dtypes[dt].bytes;
  if (bytes == 1) {
    if (!put_bytes(f, p, n)) return false;
  } else
    for (int64_t k = 0; k < n; k++) {
      int len = print_one(buf, sizeof buf - 1, dt, p + k * bytes);
      if (f->spacing && k < n - 1) buf[len++] = ' ';
      if (!put_bytes(f, buf, len)) return false;
    }
  return !f->spacing || n == 0 || put_bytes(f, "\n", 1);
}

static bool write_block(bind_file *f, rl_dtype dt, const void *p, int64_t n) {
  int bytes = rl_dtypes[dt].bytes;
  if (!f->binary) return write_ascii(f, dt, (const char *)p, n);
  if (!(f->swap && bytes > 1) && !(dt == RL_I64 && f->long_size == 4)) return put_bytes(f, p, n * bytes);
  for (int64_t k = 0; k < n; k++) {
    char one[8];
    int size = bytes;
    memcpy(one, (const char *)p + k * bytes, (size_t)bytes);
    if (dt == RL_I64 && f->long_size == 4) {
      int64_t v;
      memcpy(&v, one, 8);
      int32_t w = (int32_t)v;
      memcpy(one, &w, 4);
      size = 4;
    }
    if (f->swap) swap_bytes(one, 1, size);
    if (!put_bytes(f, one, size)) return false;
  }
  return true;
}

static void need(lua_State *L, bind_file *f, bool read) {
  if (read ? !f->readable : !f->writable) luaL_error(L, "[file] %s %s; got another mode", read ? "cannot read" : "cannot write", f->name);
  if (f->kind != F_MEMORY && f->readable && f->writable) fseeko(f->h, 0, SEEK_CUR); /* C requires it between reads and writes */
}

/* f:readInt() -> number; f:readInt(n) -> storage; f:readInt(storage) -> count. Upvalue 1: dtype. */
static int typed_read(lua_State *L) {
  rl_dtype dt = (rl_dtype)lua_tointeger(L, lua_upvalueindex(1));
  bind_file *f = self(L);
  need(L, f, true);
  rl_storage *s = bind_tostorage(L, 2);
  if (lua_isnoneornil(L, 2)) {
    int64_t one = 0;
    if (read_block(f, dt, &one, 1) != 1) { fail(L, f, "read error: no more data"); }
    lua_pushnumber(L, bind_load_as(dt, &one));
    return 1;
  }
  if (s) {
    if (s->dtype != dt) return bind_argerror(L, 2, rl_dtypes[dt].name);
    bind_real(L, s, "read");
    int64_t k = read_block(f, dt, s->data, s->size);
    if (k != s->size) fail(L, f, "read error: fewer elements than asked for");
    lua_pushnumber(L, (lua_Number)k);
    return 1;
  }
  int64_t n = bind_int(L, 2);
  if (n < 0) return bind_argerror(L, 2, "count of 0 or more");
  struct rl_graph *g = rl_self.graph;
  rl_self.graph = NULL;
  s = rl_storage_new(dt, RL_CPU, n);
  rl_self.graph = g;
  bind_push_storage(L, s);
  int64_t k = read_block(f, dt, s->data, n);
  if (k != n) {
    fail(L, f, "read error: fewer elements than asked for");
    BIND_TRY(L, rl_storage_resize(s, k));
  }
  return 1;
}

/* f:writeInt(number or storage) -> count */
static int typed_write(lua_State *L) {
  rl_dtype dt = (rl_dtype)lua_tointeger(L, lua_upvalueindex(1));
  bind_file *f = self(L);
  need(L, f, false);
  rl_storage *s = bind_tostorage(L, 2);
  int64_t one = 0, n = 1;
  bool ok;
  if (s) {
    if (s->dtype != dt) return bind_argerror(L, 2, rl_dtypes[dt].name);
    bind_real(L, s, "write");
    ok = write_block(f, dt, s->data, n = s->size);
  } else {
    bind_store_as(dt, &one, bind_number(L, 2));
    ok = write_block(f, dt, &one, 1);
  }
  if (!ok) fail(L, f, "write error");
  lua_pushnumber(L, (lua_Number)(ok ? n : 0));
  return 1;
}

/* readBool and writeBool: an int of 0 or 1. */
static int read_bool(lua_State *L) {
  bind_file *f = self(L);
  int32_t v = 0;
  need(L, f, true);
  if (read_block(f, RL_I32, &v, 1) != 1) fail(L, f, "read error: no more data");
  lua_pushboolean(L, v);
  return 1;
}

static int write_bool(lua_State *L) {
  bind_file *f = self(L);
  int32_t v = lua_toboolean(L, 2);
  need(L, f, false);
  if (!write_block(f, RL_I32, &v, 1)) fail(L, f, "write error");
  return 0;
}

/* readString('*a') -> the rest; readString('*l') -> a line without its newline. */
static int read_string(lua_State *L) {
  bind_file *f = self(L);
  const char *fmt = luaL_optstring(L, 2, "*l");
  bool line = fmt[0] == '*' && fmt[1] == 'l';
  luaL_Buffer b;
  int c;
  int64_t n = 0;
  need(L, f, true);
  if (!line && strncmp(fmt, "*a", 2) != 0) return bind_argerror(L, 2, "'*a' or '*l'");
  luaL_buffinit(L, &b);
  while ((c = get_char(f)) != EOF && !(line && c == '\n')) {
    luaL_addchar(&b, (char)c);
    n++;
  }
  luaL_pushresult(&b);
  if (n == 0 && c == EOF && line) fail(L, f, "read error: no more data");
  return 1;
}

static int write_string(lua_State *L) {
  bind_file *f = self(L);
  size_t n;
  const char *s = luaL_checklstring(L, 2, &n);
  need(L, f, false);
  if (!put_bytes(f, s, (int64_t)n)) fail(L, f, "write error");
  lua_pushnumber(L, (lua_Number)n);
  return 1;
}

/* Bytes of a serialized block: f:readBytes(n) -> string; f:left() -> bytes up to the end, or nil for pipes. */
static int64_t left(bind_file *f) {
  if (f->kind == F_MEMORY) return f->len - f->pos;
  if (f->kind == F_PIPE) return -1;
  off_t at = ftello(f->h), end;
  if (at < 0 || fseeko(f->h, 0, SEEK_END) != 0) return -1;
  end = ftello(f->h);
  fseeko(f->h, at, SEEK_SET);
  return (int64_t)(end - at);
}

static int file_left(lua_State *L) {
  int64_t n = left(self(L));
  if (n < 0) return 0;
  lua_pushnumber(L, (lua_Number)n);
  return 1;
}

static int read_bytes(lua_State *L) {
  bind_file *f = self(L);
  int64_t n = bind_int(L, 2), have = left(f);
  need(L, f, true);
  if (n < 0 || (have >= 0 && n > have) || n > INT32_MAX)
    return luaL_error(L, "[file] string of %d bytes in %s; got %d left", (int)n, f->name, (int)have);
  char *p = (char *)lua_newuserdata(L, (size_t)RL_MAX(n, 1));
  int64_t k = read_block(f, RL_I8, p, n);
  if (k != n) fail(L, f, "read error: string ends early");
  lua_pushlstring(L, p, (size_t)k);
  return 1;
}

static int write_bytes(lua_State *L) {
  bind_file *f = self(L);
  size_t n;
  const char *s = luaL_checklstring(L, 2, &n);
  need(L, f, false);
  if (!write_block(f, RL_I8, s, (int64_t)n)) fail(L, f, "write error");
  return 0;
}

/* Positions and modes ------------------------------------------------------------------------------------------------------------ */

static int file_seek(lua_State *L) {
  bind_file *f = self(L);
  int64_t at = bind_int(L, 2) - 1;
  if (at < 0 || f->kind == F_PIPE || (f->kind == F_MEMORY && at > f->len) || (f->kind == F_DISK && fseeko(f->h, at, SEEK_SET) != 0))
    fail(L, f, "cannot seek");
  else if (f->kind == F_MEMORY) f->pos = at;
  lua_settop(L, 1);
  return 1;
}

static int file_seek_end(lua_State *L) {
  bind_file *f = self(L);
  if (f->kind == F_MEMORY) f->pos = f->len;
  else if (f->kind == F_PIPE || fseeko(f->h, 0, SEEK_END) != 0) fail(L, f, "cannot seek");
  lua_settop(L, 1);
  return 1;
}

static int file_position(lua_State *L) {
  bind_file *f = self(L);
  lua_pushnumber(L, (lua_Number)(f->kind == F_MEMORY ? f->pos : (int64_t)ftello(f->h)) + 1);
  return 1;
}

static int file_sync(lua_State *L) {
  bind_file *f = self(L);
  if (f->h) fflush(f->h);
  lua_settop(L, 1);
  return 1;
}

static void do_close(bind_file *f) {
  if (f->h) f->kind == F_PIPE ? pclose(f->h) : fclose(f->h);
  if (f->mem) rl_storage_release(f->mem);
  free(f->name);
  f->h = NULL;
  f->mem = NULL;
  f->name = NULL;
  f->open = false;
}

static int file_close(lua_State *L) {
  do_close(self(L));
  return 0;
}

static int file_gc(lua_State *L) {
  bind_file *f = (bind_file *)lua_touserdata(L, 1);
  if (f->open) do_close(f);
  return 0;
}

#define SETTER(fn, field, value) \
  static int fn(lua_State *L) { \
    self(L)->field = (value); \
    lua_settop(L, 1); \
    return 1; \
  }
#define GETTER(fn, expr) \
  static int fn(lua_State *L) { \
    bind_file *f = self(L); \
    lua_pushboolean(L, (expr)); \
    return 1; \
  }
SETTER(set_ascii, binary, false)
SETTER(set_binary, binary, true)
SETTER(set_quiet, quiet, true)
SETTER(set_pedantic, quiet, false)
SETTER(set_spacing, spacing, true)
SETTER(set_no_spacing, spacing, false)
SETTER(clear_error, error, false)
SETTER(set_native, swap, false)
SETTER(set_little, swap, false)
SETTER(set_big, swap, true)
SETTER(set_referenced, referenced, lua_isnoneornil(L, 2) || lua_toboolean(L, 2))
GETTER(get_binary, f->binary)
GETTER(get_quiet, f->quiet)
GETTER(get_spacing, f->spacing)
GETTER(get_error, f->error)
GETTER(get_readable, f->readable)
GETTER(get_writable, f->writable)
GETTER(get_referenced, f->referenced)
GETTER(is_little, ((void)f, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__))
GETTER(is_big, ((void)f, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))

static int file_long_size(lua_State *L) {
  bind_file *f = self(L);
  int64_t n = bind_int(L, 2);
  if (n != 0 && n != 4 && n != 8) return bind_argerror(L, 2, "0, 4 or 8");
  f->long_size = n ? (int)n : 8;
  lua_settop(L, 1);
  return 1;
}

static int file_no_buffer(lua_State *L) {
  bind_file *f = self(L);
  if (f->h) setvbuf(f->h, NULL, _IONBF, 0);
  lua_settop(L, 1);
  return 1;
}

static int file_tostring(lua_State *L) {
  bind_file *f = (bind_file *)lua_touserdata(L, 1);
  lua_pushfstring(L, "%s on %s [status: %s -- mode %s]", type_names[f->kind], f->open ? f->name : "nothing", f->open ? "open" : "closed",
                  f->readable ? f->writable ? "rw" : "r" : "w");
  return 1;
}

/* The contents as a CharStorage of exactly their length. */
static int memory_storage(lua_State *L) {
  bind_file *f = self(L);
  if (f->kind != F_MEMORY) return bind_argerror(L, 1, "MemoryFile");
  if (f->mem->size != f->len) BIND_TRY(L, rl_storage_resize(f->mem, f->len));
  return bind_push_storage(L, rl_storage_retain(f->mem));
}

/* Opening ------------------------------------------------------------------------------------------------------------------------ */

static bind_file *push_file(lua_State *L, int kind, const char *mode, const char *name) {
  bind_file *f = (bind_file *)lua_newuserdata(L, sizeof *f);
  memset(f, 0, sizeof *f);
  f->tag = &file_tag;
  f->kind = kind;
  f->long_size = 8;
  f->readable = strchr(mode, 'r') != NULL;
  f->writable = strchr(mode, 'w') != NULL;
  f->spacing = f->referenced = true;
  f->name = strdup(name);
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_FILE - kind - 10);
  lua_setmetatable(L, -2);
  return f;
}

static const char *check_mode(lua_State *L, int i, const char *def) {
  const char *mode = luaL_optstring(L, i, def);
  if (strcmp(mode, "r") != 0 && strcmp(mode, "w") != 0 && strcmp(mode, "rw") != 0) bind_argerror(L, i, "'r', 'w' or 'rw'");
  return mode;
}

/* torch.DiskFile(name [, mode [, quiet]]) -> file, or nil in quiet mode. */
static int open_disk(lua_State *L) {
  const char *name = luaL_checkstring(L, 1), *mode = check_mode(L, 2, "r");
  bool both = mode[0] == 'r' && mode[1] == 'w', quiet = lua_toboolean(L, 3);
  FILE *h = fopen(name, both ? "r+b" : mode[0] == 'r' ? "rb" : "wb");
  if (!h && both) h = fopen(name, "w+b");
  if (!h) {
    if (quiet) return 0;
    return luaL_error(L, "[DiskFile] cannot open %s in mode %s; got %s", name, mode, strerror(errno));
  }
  bind_file *f = push_file(L, F_DISK, mode, name);
  f->h = h;
  f->quiet = quiet;
  f->open = true;
  return 1;
}

/* torch.PipeFile(command [, mode [, quiet]]) */
static int open_pipe(lua_State *L) {
  const char *name = luaL_checkstring(L, 1), *mode = check_mode(L, 2, "r");
  FILE *h = popen(name, mode[0] == 'r' ? "r" : "w");
  if (!h) {
    if (lua_toboolean(L, 3)) return 0;
    return luaL_error(L, "[PipeFile] cannot run %s; got %s", name, strerror(errno));
  }
  bind_file *f = push_file(L, F_PIPE, mode, name);
  f->h = h;
  f->open = true;
  return 1;
}

/* torch.MemoryFile([storage] [, mode]) */
static int open_memory(lua_State *L) {
  rl_storage *s = bind_tostorage(L, 1);
  const char *mode = check_mode(L, s ? 2 : 1, "rw");
  if (s && (s->dtype != RL_I8 || s->graph)) return bind_argerror(L, 1, "CharStorage");
  bind_file *f = push_file(L, F_MEMORY, mode, "memory");
  f->mem = s ? rl_storage_retain(s) : rl_storage_new(RL_I8, RL_CPU, 0);
  if (!f->mem) return bind_raise(L, RL_OOM);
  f->len = s ? s->size : 0;
  f->open = true;
  return 1;
}

static const bind_reg methods[] = { { "readBool", read_bool },
                                    { "writeBool", write_bool },
                                    { "readString", read_string },
                                    { "writeString", write_string },
                                    { "readBytes", read_bytes },
                                    { "writeBytes", write_bytes },
                                    { "left", file_left },
                                    { "seek", file_seek },
                                    { "seekEnd", file_seek_end },
                                    { "position", file_position },
                                    { "synchronize", file_sync },
                                    { "close", file_close },
                                    { "ascii", set_ascii },
                                    { "binary", set_binary },
                                    { "quiet", set_quiet },
                                    { "pedantic", set_pedantic },
                                    { "autoSpacing", set_spacing },
                                    { "noAutoSpacing", set_no_spacing },
                                    { "clearError", clear_error },
                                    { "nativeEndianEncoding", set_native },
                                    { "littleEndianEncoding", set_little },
                                    { "bigEndianEncoding", set_big },
                                    { "referenced", set_referenced },
                                    { "isBinary", get_binary },
                                    { "isQuiet", get_quiet },
                                    { "isAutoSpacing", get_spacing },
                                    { "hasError", get_error },
                                    { "isReadable", get_readable },
                                    { "isWritable", get_writable },
                                    { "isReferenced", get_referenced },
                                    { "isLittleEndianCPU", is_little },
                                    { "isBigEndianCPU", is_big },
                                    { "longSize", file_long_size },
                                    { "noBuffer", file_no_buffer },
                                    { "storage", memory_storage },
                                    { "__gc", file_gc },
                                    { "__tostring", file_tostring },
                                    { NULL, NULL } };

static void file_metatable(lua_State *L, int kind) { /* metatables on top */
  lua_newtable(L);
  for (const bind_reg *r = methods; r->name; r++) {
    lua_pushcfunction(L, r->fn);
    lua_setfield(L, -2, r->name);
  }
  for (int dt = 0; dt < RL_NDTYPE; dt++) {
    lua_pushinteger(L, dt);
    lua_pushcclosure(L, typed_read, 1);
    lua_pushfstring(L, "read%s", rl_dtypes[dt].name);
    lua_insert(L, -2);
    lua_rawset(L, -3);
    lua_pushinteger(L, dt);
    lua_pushcclosure(L, typed_write, 1);
    lua_pushfstring(L, "write%s", rl_dtypes[dt].name);
    lua_insert(L, -2);
    lua_rawset(L, -3);
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "__index");
  lua_pushstring(L, type_names[kind]);
  lua_setfield(L, -2, "__typename");
  lua_pushinteger(L, 1);
  lua_setfield(L, -2, "__version");
  lua_pushvalue(L, -1);
  lua_rawseti(L, LUA_REGISTRYINDEX, BIND_KEY_FILE - kind - 10);
  lua_setfield(L, -2, type_names[kind]);
}

void bind_open_file(lua_State *L) {
  static const bind_reg core[] = { { "openDisk", open_disk }, { "openPipe", open_pipe }, { "openMemory", open_memory }, { NULL, NULL } };
  bind_core(L, core);
  lua_rawgeti(L, LUA_REGISTRYINDEX, BIND_KEY_CORE);
  lua_getfield(L, -1, "metatables");
  for (int kind = F_DISK; kind <= F_PIPE; kind++) file_metatable(L, kind);
  lua_pop(L, 2);
}
