-- graph.Graph: a set of nodes and edges; `nodes` and `edges` are lists that are also indexed by member.

local Graph = torch.class('graph.Graph')

function Graph:__init()
   self.nodes, self.edges = {}, {}
end

--- Adds a node, once.
function Graph:addNode(node)
   local nodes = self.nodes
   if not nodes[node] then
      nodes[#nodes + 1] = node
      nodes[node] = #nodes
   end
   return self
end

--- Adds an edge and its nodes.
function Graph:add(edge)
   if torch.type(edge) == 'table' then
      for _, e in ipairs(edge) do self:add(e) end
      return self
   end
   local edges = self.edges
   if not edges[edge] then
      edges[#edges + 1] = edge
      edges[edge] = #edges
      self:addNode(edge.from)
      self:addNode(edge.to)
   end
   return self
end

-- node -> list of the nodes it has edges to.
local function targets(self)
   local out = {}
   for _, node in ipairs(self.nodes) do out[node] = {} end
   for _, edge in ipairs(self.edges) do table.insert(out[edge.from], edge.to) end
   return out
end

--- A new graph of copies of the nodes with every edge turned round, and the copies by original.
function Graph:reverse()
   local g, copies = graph.Graph(), {}
   for _, node in ipairs(self.nodes) do
      copies[node] = node.new(node.data)
      g:addNode(copies[node])
   end
   for _, edge in ipairs(self.edges) do
      copies[edge.to]:add(copies[edge.from])
      g:add(graph.Edge(copies[edge.to], copies[edge.from]))
   end
   return g, copies
end

--- Nodes that no edge leads to.
function Graph:roots()
   local has, list = {}, {}
   for _, edge in ipairs(self.edges) do has[edge.to] = true end
   for _, node in ipairs(self.nodes) do
      if not has[node] then list[#list + 1] = node end
   end
   return list
end

--- Nodes that no edge leaves.
function Graph:leaves()
   local out, list = targets(self), {}
   for _, node in ipairs(self.nodes) do
      if #out[node] == 0 then list[#list + 1] = node end
   end
   return list
end

--- The nodes in an order in which every edge goes forward; an error when there is a cycle. Also returns this graph and the root it began with.
function Graph:topsort()
   local out, state, reversed = targets(self), {}, {}
   local function visit(node)
      if state[node] == 'done' then return end
      if state[node] then error('[topsort] graph; got a cycle, need none', 0) end
      state[node] = 'open'
      for i = #out[node], 1, -1 do visit(out[node][i]) end
      state[node] = 'done'
      reversed[#reversed + 1] = node
   end
   for i = #self.nodes, 1, -1 do visit(self.nodes[i]) end
   local list = {}
   for i = #reversed, 1, -1 do list[#list + 1] = reversed[i] end
   return list, self, list[1]
end

function Graph:hasCycle()
   return not pcall(self.topsort, self)
end

local function attributes(list)
   local parts = {}
   for k, v in pairs(list) do parts[#parts + 1] = (', %s="%s"'):format(k, graph._dotEscape(v)) end
   table.sort(parts)
   return table.concat(parts)
end

--- Graphviz text, nodes in order.
function Graph:todot(title)
   local lines = {'digraph G {'}
   if title then lines[#lines + 1] = ('labelloc="t";\nlabel="%s";'):format(graph._dotEscape(title)) end
   lines[#lines + 1] = 'node [shape = oval];'
   for i, node in ipairs(self.nodes) do
      lines[#lines + 1] = ('n%d [label="%s"%s];'):format(i, graph._dotEscape(node:label()), attributes(node:graphNodeAttributes()))
   end
   for _, edge in ipairs(self.edges) do
      lines[#lines + 1] = ('n%d -> n%d;'):format(self.nodes[edge.from], self.nodes[edge.to])
   end
   lines[#lines + 1] = '}'
   return table.concat(lines, '\n') .. '\n'
end
