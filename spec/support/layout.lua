-- Layouts: reference arrays as tensors that lie in memory in different ways (array, type, layout -> tensor), and back.
local nd = require 'support.nd'
local layout = {}

local function sizes(size)
   return torch.LongStorage(size)
end

local function plain(a, dtype)
   local t = torch.DoubleTensor(sizes(#a.size == 0 and { 1 } or a.size))
   local p = t:data()
   for i = 1, a.n do p[i - 1] = a[i] end
   t = dtype == 'Double' and t or t:type(('torch.%sTensor'):format(dtype))
   return #a.size == 0 and layout.scalar(t) or t
end

--- The element of a one-element tensor as a tensor of rank 0.
function layout.scalar(t)
   return require('relume.core').op.select(t, 0, 0)
end

local make = {}

make.contiguous = plain

function make.transposed(a, dtype)
   local rank, order = #a.size, {}
   if rank < 2 then return plain(a, dtype) end
   for d = 1, rank do order[d] = d end
   order[1], order[rank] = rank, 1
   return plain(nd.permute(a, order), dtype):transpose(1, rank)
end

-- Every second element of a larger tensor, after its first row; what lies between is 77.
function make.sliced(a, dtype)
   local rank, size = #a.size, { unpack(a.size) }
   if rank == 0 then return plain(a, dtype) end
   size[1], size[rank + 1] = size[1] + 1, 2
   local big = nd.new(size, function(i)
      local index = nd.index(size, i)
      if index[1] == 0 or index[rank + 1] == 0 then return 77 end
      index[1] = index[1] - 1
      return a[nd.at(a.size, index)]
   end)
   return plain(big, dtype):narrow(1, 2, a.size[1]):select(rank + 1, 2)
end

-- Stride 0 along the first dimension; the array must be constant along it (layout.expandable makes it so).
function make.expanded(a, dtype)
   if #a.size == 0 or a.size[1] == 0 then return plain(a, dtype) end
   return plain(nd.slice(a, 1, 0, 1), dtype):expand(sizes(a.size))
end

--- The array with every row of its first dimension equal to the first row.
function layout.expandable(a)
   if #a.size == 0 or a.size[1] == 0 then return a end
   return nd.new(a.size, function(i)
      local index = nd.index(a.size, i)
      index[1] = 0
      return a[nd.at(a.size, index)]
   end)
end

-- RELUME_DEVICE=cuda: the same layout in the memory of a GPU.
local cuda = os.getenv 'RELUME_DEVICE' == 'cuda'
local function there(t)
   local name = t:type():gsub('^torch%.(%w+)Tensor$', function(dtype) return 'torch.Cuda' .. (dtype == 'Float' and '' or dtype) .. 'Tensor' end)
   local s = t:storage()
   if not s then return torch[name:match '%.(.*)$']() end
   local flat = torch[t:type():match '%.(.*)$'](s):type(name) -- the whole storage, then the window
   local size, stride = {}, {}
   for d = 1, t:dim() do size[d], stride[d] = t:size(d), t:stride(d) end
   if t:dim() == 0 and t:nElement() == 1 then return require('relume.core').op.select(flat, 0, t:storageOffset() - 1) end
   if t:nElement() == 0 then return t:type(name) end
   return flat.new(flat:storage(), t:storageOffset(), torch.LongStorage(size), torch.LongStorage(stride))
end
if cuda then require 'cutorch' end

--- Tensor of a reference array. Layouts: contiguous, transposed, sliced, expanded.
function layout.tensor(a, dtype, kind)
   local t = make[kind or 'contiguous'](a, dtype)
   return cuda and there(t) or t
end

--- Reference array of a tensor or number.
function layout.array(t)
   if type(t) == 'number' then return nd.new({}, t) end
   local size = {}
   for d = 1, t:dim() do size[d] = t:size(d) end
   if t:dim() == 0 and t:nElement() == 0 then size[1] = 0 end
   local a = nd.new(size, 0)
   if a.n == 0 then return a end
   local d = t:double():contiguous()
   local p = d:data()
   for i = 1, a.n do a[i] = p[i - 1] end
   return a
end

--- Rank as the core counts it: 0 for a scalar, 1 for Torch7's empty tensor.
function layout.rank(t)
   return t:dim() == 0 and t:nElement() == 0 and 1 or t:dim()
end

return layout
