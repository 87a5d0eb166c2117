-- Share: objects of one class that are compiled one by one (twelve equal blocks of a network) try each other's entries before they are captured
-- (state, arguments -> entry that fits). From the second object on, captures look at the fields of the object and not at which object it is.

local checks = require 'relume.jit.checks'

local M = {}
local groups = setmetatable({}, {__mode = 'k'}) -- method -> list of groups, one for each set of options

local function sameOptions(a, b)
   for k, v in pairs(a) do
      if b[k] ~= v then return false end
   end
   for k in pairs(b) do
      if a[k] == nil then return false end
   end
   return true
end

--- Puts a state among those that were made from the same method with the same options.
function M.join(state, method)
   local list = groups[method] or {}
   groups[method] = list
   for _, group in ipairs(list) do
      if sameOptions(group.opts, state.opts) then
         state.group = group
         return
      end
   end
   state.group = {opts = state.opts, entries = setmetatable({}, {__mode = 'v'}), first = setmetatable({}, {__mode = 'v'})}
   list[#list + 1] = state.group
end

-- True when another object of the group was captured before this one.
local function isLater(state)
   local group = state.group
   if group.first[1] == nil then group.first[1] = state end
   return group.first[1] ~= state
end

local function fits(entry, ...)
   local s = entry.owner
   entry.diagnose = entry.diagnose or checks.diagnose(entry.ctx, s.proto)
   return #entry.diagnose(...) == 0
end

--- An entry of another object whose guards hold for this call, or nil. The next capture of a later object is one that others can use.
function M.find(state, ...)
   local group = state.group
   if not group or not isLater(state) then return end
   for _, entry in pairs(group.entries) do
      if entry.owner ~= state then
         local ok, yes = pcall(fits, entry, ...)
         if ok and yes then return entry end
      end
   end
   state.marks.struct.a1 = true
end

--- Lets the group use an entry. Those that are left at a break, or hold plans by geometry, stay with their object.
function M.offer(state, entry)
   if not state.group or not state.marks.struct.a1 or entry.leaves or entry.identity then return end
   entry.owner = state
   table.insert(state.group.entries, entry)
end

return M
