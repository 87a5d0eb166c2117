-- nngraph.Node: one module (or the input, the output, a split, a selection) of a network graph; its children are its inputs.

local Node = torch.class('nngraph.Node', 'graph.Node')

--- True for nodes of nngraph.
function nngraph.isNode(x)
   return torch.isTypeOf(x, 'nngraph.Node')
end

-- '[file]:line' of the program that is building the graph.
local function place()
   for level = 3, 12 do
      local info = debug.getinfo(level, 'Sl')
      if not info then break end
      if info.currentline > 0 and not info.source:find('nngraph/', 1, true) and not info.source:find('torch/class', 1, true) then
         return ('[%s]:%d'):format(info.short_src, info.currentline)
      end
   end
   return '[?]:0'
end

--- data.mapindex: the data of the inputs, in order, and their places by data. data.reverseMap: the nodes that use this one.
function Node:__init(data)
   graph.Node.__init(self, data or {})
   data = self.data
   data.annotations = data.annotations or {}
   data.mapindex = data.mapindex or {}
   data.reverseMap = data.reverseMap or {}
   if not data.annotations._debugLabel then data.annotations._debugLabel = place() .. '_' end
end

--- Adds an input; with index, as the next one that the module gets.
function Node:add(child, index)
   graph.Node.add(self, child)
   if index then
      local map = self.data.mapindex
      map[#map + 1] = child.data
      map[child.data] = #map
      child.data.reverseMap[self] = true
   end
   return self
end

--- Nodes for the n entries of this node's output, a table: local a, b = node:split(2).
function Node:split(n)
   assert(type(n) == 'number' and n >= 1, '[split] number of outputs; got ' .. tostring(n) .. ', need one of at least 1')
   local all = nngraph.Node({nSplitOutputs = n})
   all:add(self, true)
   local parts = {}
   for i = 1, n do
      parts[i] = nngraph.Node({selectindex = i})
      parts[i]:add(all, true)
   end
   return unpack(parts)
end

--- Stores a table of annotations: name, and graphAttributes for drawings.
function Node:annotate(annotations)
   for k, v in pairs(annotations) do self.data.annotations[k] = v end
   return self
end

--- `node - module` is module called on node.
function Node.__sub__(from, module)
   return module(from)
end

local function textOf(data)
   if data.module then return tostring(data.module) end
   if data.selectindex then return 'select ' .. data.selectindex end
   if data.nSplitOutputs then return 'split(' .. data.nSplitOutputs .. ')' end
   return #data.mapindex == 0 and 'input' or 'output'
end

function Node:label()
   local notes = self.data.annotations
   local name = notes.name
   return (name and name .. '\n' or '') .. textOf(self.data)
end

function Node:graphNodeAttributes()
   return self.data.annotations.graphAttributes or {}
end
