-- Chains: how a captured path is left at a graph break at any depth of calls (frames of the evaluator -> exit).
--
-- The frames of the evaluator, outermost first, are f1 ... fn; the break is at the instruction that fn is about to run. Behind the graph:
--   1. the step of fn runs that instruction in the real VM;
--   2. the resume function of fn goes on behind it and returns what fn returns;
--   3. the resume function of each frame outside gets those results where its call left them, and so on to f1, whose results are the closure's.
-- Between two frames may be library functions that called the inner one (pcall, noGrad): they are called again around what is inside.
-- How a frame's results reach the one outside is its field via, written by the instruction or library function that called it:
--   {kind = results | first | none | branch | tail, negate, outer}, {kind = pcall | xpcall | grad, outer = via}.
-- A frame without via was called by something that cannot be entered again (a comparison of table.sort): then the whole instruction of the
-- frame outside is the break.

local bytecode = require 'relume.jit.bytecode'
local live = require 'relume.jit.live'
local resume = require 'relume.jit.resume'

local M = {}
local DEPTH, RESULTS = 24, 20

-- Prototype of the program that a frame runs: that of the original in a resume function.
local function protoOf(f)
   local o = resume.origin(f.proto)
   return o and o.p or f.proto
end

-- Instruction of the program for the frame's instruction pc, and the slots that hold cells there.
local function home(f, pc)
   local o = resume.origin(f.proto)
   if o then return resume.home(o, pc) end
   return pc
end

-- How the results that come by via go on in a frame outside: {kind, base, n, next, other, negate}, or nil.
local function link(p, pc, via)
   while via and via.outer do via = via.outer end
   if not via then return end
   local i, kind = p.code[pc], via.kind
   if kind == 'tail' then return {kind = 'tail'} end
   if kind == 'none' then return {kind = 'value', base = 0, n = 0, next = pc + 1} end
   if kind == 'first' then return {kind = 'value', base = i.a, n = 1, next = pc + 1} end
   if kind == 'branch' then return {kind = 'branch', negate = via.negate, next = p.code[pc + 1].target, other = pc + 2} end
   if i.b > RESULTS then return end
   if i.b > 0 then return {kind = 'value', base = i.a, n = i.b - 1, next = pc + 1} end
   if p.vararg or not resume.takesPending[p.code[pc + 1].op] then return end
   return {kind = 'pending', next = pc + 1}
end

local function known(f)
   return live.before(protoOf(f)) ~= nil
end

--- Number of the instruction at which capture has to stop for a break at the innermost frame (they are counted over all frames), the frame that
-- runs it, and true when all behind it runs eagerly; nil when it cannot.
function M.place(ctx)
   if ctx.coroutineAt then return {at = ctx.coroutineAt, lifted = true} end
   local frames = ctx.frames
   local depth = #frames
   if depth == 0 or not known(frames[1]) then return end
   for i = 2, depth do
      local f = frames[i - 1]
      if i > DEPTH or not known(frames[i]) or not link(protoOf(f), (home(f, f.pc - 1)), frames[i].via) then depth = i - 1 break end
   end
   return {at = frames[depth].at, lifted = depth < #frames}
end

-- Variables of a frame that closures change: slot -> the value that is its cell in a resume function, or the cell of an open upvalue.
local function shared(f, boxed)
   local list = {}
   for _, s in ipairs(boxed or {}) do list[s] = {value = f.slots[s]} end
   for s, c in pairs(f.open) do
      if not c.immutable and not list[s] then list[s] = {cell = c} end
   end
   return list
end

local function boxedSlots(seg)
   local list = {}
   for s in pairs(seg.shared) do list[#list + 1] = s end
   table.sort(list)
   return list[1] and list or nil
end

-- The function of a frame when it is always the same one.
local function fixed(f)
   return f.fn.real and f.fn.src and f.fn.src.kind == 'const' and f.fn.real or nil
end

local function env(fn)
   while fn.env do fn = fn.env end
   return getfenv(fn.real)
end

-- A Lua function that the breaking call enters is compiled by itself.
local function callee(ctx, state, f, i)
   if not i.op:find '^CALL' then return end
   local v = f.slots[i.a]
   if v.k ~= 'func' or not v.real or not bytecode.id(v.real) then return end
   ctx:needFunc(v)
   if v.byproto then return end -- another closure of the same function may come
   return i.a, state:child(v.real)
end

local function rests(state, seg, l, eagerly)
   local f, p = fixed(seg.frame), seg.p
   local real = f and (resume.origin(seg.frame.proto) or {}).f or f
   if l.next then seg.next = state:rest(real, p, l.next, l.kind == 'pending', boxedSlots(seg), eagerly) end
   if l.other then seg.other = state:rest(real, p, l.other, nil, boxedSlots(seg)) end
   return (seg.next or not l.next) and (seg.other or not l.other)
end

local function innermost(ctx, state, seg, place)
   local f, p, pc = seg.frame, seg.p, seg.pc
   if place.rest then
      seg.kind = 'rest'
      return rests(state, seg, {next = pc}, true)
   end
   local s = state:step(p, pc, env(f.fn))
   if not s then return end
   seg.kind, seg.step = s.kind, s
   if place.lifted then seg.calleeSlot, seg.callee = callee(ctx, state, f, p.code[pc]) end
   return rests(state, seg, s)
end

-- The instruction that made the first closure which changes a variable that is still there.
local function earliest(frames)
   local at
   for _, f in ipairs(frames) do
      for _, c in pairs(f.open) do
         if not c.immutable then at = math.min(at or c.at, c.at) end
      end
   end
   return at, at ~= nil
end

--- How the captured part is left, with the innermost frame in front of the instruction at which capture stopped: list of segments, innermost
-- first; nil when it cannot be, and an instruction at which it can be left instead, true when all behind that runs eagerly.
function M.exit(ctx, state, place)
   if ctx.coroutineAt then return nil, ctx.coroutineAt end
   local frames, list = ctx.frames, {}
   for k = #frames, 1, -1 do
      local f = frames[k]
      local inner = k == #frames
      local p, pc, boxed = protoOf(f), home(f, inner and f.pc or f.pc - 1)
      local seg = {frame = f, p = p, pc = pc, via = f.via, home = k == 1, shared = shared(f, boxed)}
      if inner then
         if not innermost(ctx, state, seg, place) then return nil, earliest(frames) end
      else
         local l = link(p, pc, frames[k + 1].via)
         if not l then return end
         seg.kind, seg.base, seg.n, seg.negate = l.kind, l.base, l.n, l.negate
         if not rests(state, seg, l) then return nil, earliest(frames) end
      end
      list[#list + 1] = seg
   end
   return list
end

return M
