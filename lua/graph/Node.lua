-- graph.Node: data and an ordered list of children; the nodes that can be reached from one make a graph.

local Node = torch.class('graph.Node')
local count = 0

--- data: any value, what the node stands for.
function Node:__init(data)
   count = count + 1
   self.data = data
   self.id = count
   self.children = {}
   self.visited, self.marked = false, false
end

--- Adds a child, once, at the end. children is also indexed by child: children[child] is its place.
function Node:add(child)
   local children = self.children
   if torch.type(child) == 'table' then
      for _, c in ipairs(child) do self:add(c) end
   elseif not children[child] then
      children[#children + 1] = child
      children[child] = #children
   end
   return self
end

-- All nodes from here, children after the node that named them first.
local function reach(node, seen, list)
   if seen[node] then return list end
   seen[node] = true
   list[#list + 1] = node
   for _, child in ipairs(node.children) do reach(child, seen, list) end
   return list
end

--- Calls f on every node that can be reached, depth first.
function Node:dfs(f)
   for _, node in ipairs(reach(self, {}, {})) do f(node) end
end

--- Calls f on every node that can be reached, breadth first.
function Node:bfs(f)
   local list, seen, i = {self}, {[self] = true}, 1
   while list[i] do
      f(list[i])
      for _, child in ipairs(list[i].children) do
         if not seen[child] then
            seen[child] = true
            list[#list + 1] = child
         end
      end
      i = i + 1
   end
end

--- The graph of everything that can be reached.
function Node:graph()
   local g = graph.Graph()
   for _, node in ipairs(reach(self, {}, {})) do
      g:addNode(node)
      for _, child in ipairs(node.children) do g:add(graph.Edge(node, child)) end
   end
   return g
end

--- Text in drawings.
function Node:label()
   return tostring(self.data)
end

--- Attributes in drawings.
function Node:graphNodeAttributes()
   return {}
end
