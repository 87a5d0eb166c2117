-- nngraph: networks as graphs, built by calling modules on nodes (nn.Linear(2, 3)(node) -> node; nodes -> nn.gModule).
--
--    local a, b = nn.Identity()(), nn.Identity()()
--    local sum = nn.CAddTable()({nn.Linear(4, 5)(a), nn.Linear(5, 5)(b)})
--    local net = nn.gModule({a, b}, {nn.Tanh()(sum)})
--
-- `input - nn.Linear(2, 3) - nn.Tanh()` says the same as calls do; `- nn.Identity()` makes an input.

require 'nn'
require 'graph'

nngraph = nngraph or {}

require 'nngraph.Node'
require 'nngraph.gModule'

local isNode = nngraph.isNode
local Module, Criterion = torch.getmetatable 'nn.Module', torch.getmetatable 'nn.Criterion'
local moduleCall, criterionCall = Module.__call__, Criterion.__call__

-- A node of module whose inputs are the given nodes.
local function node(module, inputs)
   if isNode(inputs) then inputs = {inputs} end
   local made = nngraph.Node({module = module})
   for i, input in ipairs(inputs or {}) do
      if not isNode(input) then
         error(('[nngraph] input %d of %s; got %s, need a node'):format(i, torch.type(module), torch.type(input)), 3)
      end
      made:add(input, true)
   end
   return made
end

-- A call builds a node when its argument is nothing, a node or a list of nodes.
local function builds(input, second)
   if second ~= nil then return false end
   return input == nil or isNode(input) or type(input) == 'table' and (next(input) == nil or isNode(input[1]))
end

function Module:__call__(input, gradOutput)
   if builds(input, gradOutput) then return node(self, input) end
   return moduleCall(self, input, gradOutput)
end

function Criterion:__call__(input, target)
   if builds(input, target) then return node(self, input) end
   return criterionCall(self, input, target)
end

--- `- module`: a node without inputs. `node - module`: module called on node.
function Module:__unm__()
   return node(self)
end

function Module.__sub__(from, module)
   return node(module, from)
end

--- Names the nodes in the caller's local variables after them.
function nngraph.annotateNodes()
   local i = 1
   while true do
      local name, value = debug.getlocal(2, i)
      if not name then return end
      if isNode(value) then
         local notes = value.data.annotations
         notes._debugLabel = (notes._debugLabel or ''):gsub('_[^_]*$', '') .. '_' .. name
         notes.name = notes.name or name
      end
      i = i + 1
   end
end

--- Outputs as nested tables: nngraph.nest {a, {b, c}} is a node whose value has that shape.
function nngraph.nest(x)
   if isNode(x) then return x end
   local inner = {}
   for i, v in ipairs(x) do inner[i] = nngraph.nest(v) end
   local made = node(nn.Identity(), inner)
   if #inner == 1 then made.data.wrap = true end
   return made
end

local debugging = false

--- With true, an error in a graph says which node it was in.
function nngraph.setDebug(on)
   debugging = on
end
function nngraph.debugging() return debugging end

--- Prints a graph as Graphviz text; nngraph.display is the same.
function nngraph.simple_print(g, title)
   io.write(graph.dot(g, title))
end
nngraph.display = nngraph.simple_print

return nngraph
