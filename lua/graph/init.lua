-- graph: nodes with children, directed graphs of them, orders and Graphviz text (nodes -> graph.Graph -> lists, dot).
-- The interface of Torch's rock of that name.

require 'torch'

graph = graph or {}

require 'graph.Edge'
require 'graph.Node'
require 'graph.Graph'

local function escape(text)
   return (tostring(text):gsub('[\\"]', '\\%0'):gsub('\n', '\\l'))
end
graph._dotEscape = escape

--- Graphviz text of a graph.Graph; title heads the drawing. With fname, writes fname.dot and, where Graphviz is installed, fname.svg.
function graph.dot(g, title, fname)
   local text = g:todot(title)
   if fname then
      local file = assert(io.open(fname .. '.dot', 'w'))
      file:write(text)
      file:close()
      graph.graphvizFile(g, 'dot', fname .. '.svg', fname .. '.dot')
   end
   return text
end

--- Draws g with a Graphviz program ('dot', 'neato' ...) into a file of the format that fname ends in; false when there is none.
function graph.graphvizFile(g, algorithm, fname, source)
   local path = source or os.tmpname()
   if not source then
      local file = assert(io.open(path, 'w'))
      file:write(g:todot())
      file:close()
   end
   local format = fname:match '%.(%w+)$' or 'svg'
   local status = os.execute(("%s -T%s -o '%s' '%s' 2>/dev/null"):format(algorithm or 'dot', format, fname, path))
   if not source then os.remove(path) end
   return status == 0 or status == true
end

return graph
