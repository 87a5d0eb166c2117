-- Failing runs: ops that raise for some values (an index out of range, a matrix that is singular). A plan that fails has changed nothing when it
-- updates no input; the program then runs eagerly, which raises at its own line after the effects in front of it.

local M = {FAILED = {}}

local ops = {multinomial = true, gather = true, scatter = true, scatter_add = true, index_select = true, index_add = true, index_copy = true,
   index_fill = true, masked_scatter = true, take = true, put_add = true, embedding = true, inverse = true, gesv = true, trtrs = true, potrf = true,
   potri = true, potrs = true, symeig = true, eig = true, svd = true, nll_loss = true, cross_entropy = true}

--- True when some op of a graph may raise while it runs.
function M.mayFail(graph)
   for name in pairs(graph and graph:ops() or {}) do
      if ops[name] then return true end
   end
   return false
end

local function settled(ok, ...)
   if ok then return ... end
   return M.FAILED, ...
end

--- run as a function that returns FAILED instead of raising; run itself when the graph cannot fail or updates inputs.
function M.guarded(run, graph)
   if not M.mayFail(graph) then return run end
   local ok, functional = pcall(graph.passes, graph)
   if not ok or select(3, functional:sizes()) > 0 then return run end
   return function(...) return settled(pcall(run, ...)) end
end

return M
