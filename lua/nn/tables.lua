-- nn.tables: which input planes an output plane of SpatialConvolutionMap sees (rows of {input, output}).

local tables = {}

--- Every output sees every input.
function tables.full(nin, nout)
   local t = torch.Tensor(nin * nout, 2)
   for o = 1, nout do
      for i = 1, nin do
         t[(o - 1) * nin + i][1] = i
         t[(o - 1) * nin + i][2] = o
      end
   end
   return t
end

--- Output i sees input i.
function tables.oneToOne(n)
   local t = torch.Tensor(n, 2)
   for i = 1, n do t[i]:fill(i) end
   return t
end

--- Every output sees nto inputs drawn at random, each input as often as the others.
function tables.random(nin, nout, nto)
   local t, order, used = torch.Tensor(nto * nout, 2), nil, nin
   for o = 1, nout do
      for k = 1, nto do
         if used == nin then order, used = torch.randperm(nin), 0 end
         used = used + 1
         t[(o - 1) * nto + k][1] = order[used]
         t[(o - 1) * nto + k][2] = o
      end
   end
   return t
end

return tables
