-- Chunks: guards and loads of a large path in functions of their own (emitter, what fills one -> a call of it).
-- LuaJIT compiles no trace with more than some hundred exits; a guard is one, so a path with a thousand guards would run in the interpreter for ever.
-- A chunk loads what it needs by itself, from arguments, upvalues and constants. It returns the index of the guard that failed, or nothing.

jit.off(true, true) -- each path is evaluated once: traces would not pay, and would push out the program's

local emit = require 'relume.jit.emit'

local Emit = emit.Emit
local fmt, concat = string.format, table.concat
local SIZE = 100 -- guards or loads of one chunk
local MANY = 40  -- tensors from which on they go through a table

-- Runs fill with an empty scope; its lines become a chunk, and the head calls it.
function Emit:chunk(fill)
   local head, loads, exprs, nlocal = self.head, self.loads, self.exprs, self.nlocal
   self.head, self.loads, self.exprs, self.nlocal, self.inChunk = {}, {}, {}, 0, true
   fill()
   self.chunks = self.chunks or {}
   self.chunks[#self.chunks + 1] = self.head
   self.head, self.loads, self.exprs, self.nlocal, self.inChunk = head, loads, exprs, nlocal, false
   return fmt('G[%d](%s)', #self.chunks, self.args)
end

--- Calls f(i) for 1 .. n, in chunks when there are many.
function Emit:inChunks(n, f)
   if self.mode or n <= SIZE then
      for i = 1, n do f(i) end
      return
   end
   for from = 1, n, SIZE do
      local call = self:chunk(function()
         for i = from, math.min(from + SIZE - 1, n) do f(i) end
      end)
      self.head[#self.head + 1] = fmt('do local m__ = %s if m__ then return miss(m__%s%s) end end', call, self.args ~= '' and ', ' or '', self.args)
   end
end

--- True when so many tensors are better kept in a table.
function Emit:isMany(n) return not self.mode and n > MANY end

--- Puts values into table `name`, each text made by text(i) where it is used; returns their list.
function Emit:spread(name, n, text)
   self.tables = self.tables or {}
   self.tables[name] = true
   for from = 1, n, SIZE do
      self.head[#self.head + 1] = self:chunk(function()
         for i = from, math.min(from + SIZE - 1, n) do
            local x = text(i)
            self.head[#self.head + 1] = fmt('%s[%d] = %s', name, i, x)
         end
      end)
   end
   return fmt('unpack(%s, 1, %d)', name, n)
end

-- Outputs that only replace what a tensor was -------------------------------------------------------------------------------------

--- Takes those pairs 'x, o__k' out of a list that the plan can set by itself (see plan:callSet and callTo): our own plan runs, and x lies in Q where
-- the tensors do. What becomes of the output otherwise is looked at when the body is there (choosePlanSets).
function Emit:setByPlan(pairsOf)
   local ctx, rest = self.ctx, {}
   local backend = ctx.opts.backend
   if ctx.joint and not ctx.joint.holds or backend and backend ~= 'c' then return pairsOf end
   local many, n = self.inputs[1] == 'Q[1]', 0
   for _, pair in ipairs(pairsOf) do
      local target, k = pair:match '^(.+), o__(%d+)$'
      k = tonumber(k)
      if (many and target:find '^Q%[' or not many and n < MANY) and not (self.planSets and self.planSets[k]) then
         self.planSets = self.planSets or {}
         self.planSets[k], n = target, n + 1
      else rest[#rest + 1] = pair end
   end
   return rest
end

--- Keeps of these sets the outputs that nothing else uses; the others are set behind the plan, first of all. Where the plan holds what a backward
-- outside needs, the outputs that only it needs get no object.
function Emit:choosePlanSets()
   local holds = self.ctx.joint and self.ctx.joint.holds
   if not self.planSets and not holds then return end
   local text = concat(self.body, '\n') .. '\n' .. concat(self.items, '\n') .. '\n' .. (self.final or '') .. '\n' .. (self.returns or '')
   local used = {}
   for k in text:gmatch '%f[%w_]o__(%d+)%f[^%w_]' do used[tonumber(k)] = true end
   if holds then self.pushed = used end
   for k = 1, self.planSets and self.ctx.outputs.n or 0 do
      local target = self.planSets[k]
      if target and used[k] then
         table.insert(self.body, 1, fmt('setAll(%s, o__%d)', target, k))
         self.planSets[k] = nil
      end
   end
end

--- Outputs that only say what a tensor becomes, or a number, let go of their memory at once: their objects are garbage that the collector finds late,
-- and until then a plan on a GPU would keep what they show by a copy.
function Emit:dropOutputs()
   local backend = self.ctx.opts.backend
   if backend and backend ~= 'c' then return end
   local lines = {concat(self.items, '\n'), concat(self.body, '\n'), self.final or '', self.returns or ''}
   local uses, body = {}, {}
   for k in concat(lines, '\n'):gmatch '%f[%w_]o__(%d+)%f[^%w_]' do uses[k] = (uses[k] or 0) + 1 end
   local function drop(text)
      local list = {}
      for k in text:gmatch 'o__(%d+)' do
         if uses[k] == 1 then list[#list + 1] = 'o__' .. k end
      end
      if #list > 0 then body[#body + 1] = fmt('dropAll(%s)', concat(list, ', ')) end
   end
   for _, l in ipairs(self.items) do
      if l:find '^local [%w_]+ = item%(o__%d+%)$' then drop(l) end
   end
   for _, l in ipairs(self.body) do
      body[#body + 1] = l
      if l:find '^setAll%(' then drop(l) end
   end
   -- These modules' records are the new one now: what the last run left for them is read by nobody. Not so where they may have been others.
   local joint = self.ctx.joint
   self.dropsHeld = joint and joint.holds and not self.movingRecords
   if self.dropsHeld then body[#body + 1] = fmt('lastHeld[1] = dropHeld(lastHeld[1], o__%d)', joint.nout + 1) end
   self.body = body
end

--- What becomes of each output of the plan, as plan:callSet takes it, the names of those that it returns, and the tensors that it sets (none where they
-- lie in Q).
function Emit:planPlaces(outs)
   local places, names, targets, holds = {}, {}, {}, self.ctx.joint and self.ctx.joint.holds
   for k = 1, holds and #outs - 1 or #outs do
      local target = self.planSets and self.planSets[k]
      if target and self.inputs[1] ~= 'Q[1]' then
         targets[#targets + 1] = target
         places[k] = #targets
      elseif target then places[k] = tonumber(target:match '%d+')
      elseif not holds or self.pushed[k] then
         places[k] = 0
         names[#names + 1] = outs[k]
      end
   end
   if holds then places[0], names[#names + 1] = true, outs[#outs] end
   return places, names, targets
end

--- The line that runs the plan with these sets; what remains are the outputs without one.
function Emit:planCallSet(outs, arguments)
   local places, names = self:planPlaces(outs)
   local call = fmt('plan:callSet(%s, Q, %s)', arguments, self:klist(places))
   self.places = places
   return self:receive(names, call)
end

--- The line that calls the plan and takes its results by name.
function Emit:receive(names, call)
   self.firstResult = names[1]
   if #names == 0 then return call end
   if #names + self.nlocal + (self.nresult or 0) < 180 then return fmt('local %s = %s', concat(names, ', '), call) end
   self.manyOutputs = true
   local lines = {}
   for i, name in ipairs(names) do lines[i] = fmt('%s = R[%d]', name, i) end -- O[k] = R[i]
   return fmt('local O, R = {}, {%s}\n%s', call, concat(lines, '\n'))
end

-- Writes -----------------------------------------------------------------------------------------------------------------------

--- Long runs of writes that need no local go into chunks too.
function Emit:chunkBody()
   local body, run = {}, {}
   local function flush()
      if #run < SIZE / 4 then
         for _, l in ipairs(run) do body[#body + 1] = l end
      else
         self.chunks = self.chunks or {}
         self.chunks[#self.chunks + 1] = run
         body[#body + 1] = fmt('G[%d](%s)', #self.chunks, self.args)
      end
      run = {}
   end
   for _, l in ipairs(self.body) do
      local simple = l:find '^rawset%(K%[%d+%], [%w"\'_]+, [KQ]%[%d+%]%)$'
      if not simple or #run == SIZE then flush() end
      if simple then run[#run + 1] = l else body[#body + 1] = l end
   end
   flush()
   self.body = body
end

--- Source lines of the chunks.
function Emit:chunkLines(lines)
   for name in pairs(self.tables or {}) do lines[#lines + 1] = fmt('local %s = {}', name) end
   for i, chunk in ipairs(self.chunks or {}) do lines[#lines + 1] = fmt('G[%d] = function(%s)\n%s\nend', i, self.args, concat(chunk, '\n')) end
end

return {}
