-- Line input: GNU readline when it is there (history, completion), else plain lines (prompt -> line).
local complete = require 'trepl.complete'
local input = {}
local lib, ffi, interactive, history, callback

local declarations = [[
char *readline(const char *prompt);
void add_history(const char *line);
int read_history(const char *file);
int write_history(const char *file);
void stifle_history(int most);
void free(void *p);
char *strdup(const char *s);
extern char *(*rl_completion_entry_function)(const char *text, int state);
extern const char *rl_basic_word_break_characters;
extern int rl_completion_append_character;
]]

local function open_library()
   ffi = require 'ffi'
   if not pcall(ffi.cdef, declarations) then return nil end
   for _, name in ipairs {'libreadline.so.8', 'libreadline.so.7', 'libreadline.so', 'readline', 'libedit.so.2'} do
      local ok, found = pcall(ffi.load, name)
      if ok then return found end
   end
end

-- readline calls this for each candidate, state counting from 0; it frees what it gets.
local function candidates()
   local list = {}
   return function(text, state)
      local ok, result = pcall(function()
         if state == 0 then
            list = complete(ffi.string(text))
            lib.rl_completion_append_character = 0 -- readline sets it back to a space before each completion
         end
         local word = list[state + 1]
         return word and ffi.C.strdup(word) or nil
      end)
      return ok and result or nil
   end
end

--- Prepares reading; tty: a person types.
function input.open(tty)
   interactive = tty
   if not tty or os.getenv 'TERM' == 'dumb' then return end
   lib = open_library()
   if not lib then return end
   callback = callback or ffi.cast('char *(*)(const char *, int)', candidates())
   pcall(function()
      lib.rl_completion_entry_function = callback
      lib.rl_basic_word_break_characters = ' \t\n"\\\'><=;,+-*/%^~#{}()[]'
   end)
   local home = os.getenv 'HOME'
   history = home and home .. '/.th_history'
   if history then lib.read_history(history) end
   lib.stifle_history(2000)
end

-- Not compiled: a callback may enter Lua while readline runs.
local function edited(prompt)
   local p = lib.readline(prompt)
   if p == nil then return nil end
   local line = ffi.string(p)
   ffi.C.free(p)
   return line
end
jit.off(edited)

--- The next line, or nil at the end.
function input.line(prompt)
   if lib then return edited(prompt) end
   if interactive then
      io.write(prompt)
      io.flush()
   end
   return io.read '*l'
end

--- Adds a line to the history.
function input.remember(line)
   if lib then lib.add_history(line) end
end

--- Writes the history.
function input.close()
   if lib and history then lib.write_history(history) end
end

return input
