-- View: the input with other sizes, batch dimension kept.

local View = torch.class('nn.View', 'nn.Module')

--- Sizes as numbers or a LongStorage; one may be -1 (inferred).
function View:__init(...)
   nn.Module.__init(self)
   self:resetSize(...)
   self:setNumInputDims()
end

--- Changes the sizes.
function View:resetSize(...)
   local first = ...
   self.size = torch.typename(first) == 'torch.LongStorage' and first or torch.LongStorage {...}
   self.numElements = 1
   local inferred = false
   for i = 1, #self.size do
      local n = self.size[i]
      if n >= 0 then
         self.numElements = self.numElements * n
      else
         assert(n == -1, 'size should be positive or -1')
         assert(not inferred, 'only one dimension can be at -1')
         inferred = true
      end
   end
   return self
end

--- Says how many dimensions one sample has; more are a batch.
function View:setNumInputDims(numInputDims)
   self.numInputDims = numInputDims
   return self
end

-- Size of the batch dimension to put in front, or nil.
local function batchSize(self, input)
   local dims, size, numElements = input:dim(), self.size, self.numElements
   local limit = self.numInputDims or dims
   local n = 1
   for i = math.max(dims - limit, 0) + 1, dims do n = n * input:size(i) end
   if n % numElements ~= 0 then
      error(('[View] input view (%s) and desired view (%s) do not match'):format(
         table.concat(input:size():totable(), 'x'), table.concat(size:totable(), 'x')), 0)
   end
   local batch = n / numElements
   for i = 1, #size do
      if size[i] == -1 then batch = 1 end
   end
   for i = 1, dims - limit do batch = batch * input:size(i) end
   if batch == 1 and (not self.numInputDims or dims <= self.numInputDims) then return nil end
   return batch
end

function View:compute(input)
   local batch, size = batchSize(self, input), self.size
   input = input:contiguous()
   if not batch then return input:view(size) end
   local sizes = {batch}
   for i = 1, #size do sizes[i + 1] = size[i] end
   return input:view(unpack(sizes))
end

function View:__tostring__()
   return torch.type(self) .. '(' .. table.concat(self.size:totable(), ', ') .. ')'
end
