-- Trials: whether the graphs between the breaks of a function pay. Once nothing new is compiled any more, some calls run the compiled form and some the
-- program's own function, with a clock; the faster one stays (state -> what its calls run). Both give the same results. A function that runs
-- eagerly is tried again later, each time after twice as many calls.

local log = require 'relume.jit.debug'
local okC, C = pcall(require, 'relume.core')
local clock = okC and C.clock or os.clock

--- `on`: false where what is captured counts and not how fast it is, as in a census.
local M = {on = true}
local WARM, SAMPLES, AGAIN = 16, 16, 10000
local MARGIN = 0.9 -- the compiled form has to be clearly faster: in a hot loop LuaJIT makes more of the program's own function
local BLOCK = 4     -- calls of one form in a row

local runEagerly

-- Ends a trial: the faster form from now on.
local function settle(state, t)
   state.trial = nil
   if t.compiled <= t.eager * MARGIN then
      state.small, state.top = nil, t.top
      return
   end
   state.small = {compiled = t.compiled, eager = t.eager, calls = t.again}
   log.log(1, '%s: %s', state.name, M.describe(state))
   runEagerly(state, t)
end

local function done(state, t, kind, start, ...)
   local seconds = clock() - start
   if seconds < t[kind] then t[kind] = seconds end
   t.busy, t.left = false, t.left - 1
   if t.left == 0 and state.trial == t then settle(state, t) end
   return ...
end

local function sampler(state, t)
   return function(...)
      if t.busy or t.warm > 0 then
         t.warm = t.warm - 1
         return t.top(...)
      end
      t.busy = true
      if t.left % (2 * BLOCK) < BLOCK then return done(state, t, 'compiled', clock(), t.top(...)) end
      return done(state, t, 'eager', clock(), state.f(...))
   end
end

local function start(state, top, warm, samples, again)
   local t = {top = top, warm = warm, left = 2 * samples, compiled = math.huge, eager = math.huge, again = again}
   state.trial = t
   state.top = sampler(state, t)
end

-- Without variable arguments where the function has none: they would cost more than the rest.
local COUNTED = [[
local f, left, again = ...
return function(%s)
   left = left - 1
   if left == 0 then again() end
   return f(%s)
end]]

function runEagerly(state, t)
   local args = {}
   for i = 1, state.proto.params do args[i] = 'a' .. i end
   if state.proto.vararg then args[#args + 1] = '...' end
   local list = table.concat(args, ', ')
   local function again() start(state, t.top, 1, BLOCK, t.again * 2) end
   state.top = assert(loadstring(COUNTED:format(list, list), '=compiled'))(state.f, t.again, again)
end

--- A path that ends at a break, or goes on behind one, was compiled: the function it belongs to is to be tried.
function M.begin(state)
   if not M.on or state.top == state.first or not state.entries[1] then return end
   start(state, state.entries[1].fn, WARM, SAMPLES, AGAIN)
end

--- The compiled form of a state begins at fn from now on.
function M.enter(state, fn)
   if state.trial then state.trial.top = fn else state.top = fn end
end

--- What a trial said against the compiled form, nil when it did not.
function M.describe(state)
   local s = state.small
   if not s then return end
   return ('runs eagerly: the graphs between its breaks are too small to pay (fastest call: %.2f us compiled, %.2f us eager); tried again after %d calls')
      :format(s.compiled * 1e6, s.eager * 1e6, s.calls)
end

return M
