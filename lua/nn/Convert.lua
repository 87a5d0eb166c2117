-- Convert: changes the order or number of dimensions, named by letters ('bchw' -> 'chwb'), and the tensor type to the module's own.

local Convert = torch.class('nn.Convert', 'nn.Container')

local function withBatch(shape)
   return shape:find 'b' and shape or 'b' .. shape
end

--- Letters of the input's and the output's dimensions; b is the batch and is put in front where it is missing. A plain reordering needs the
-- same letters; 'bf' flattens, 'b' and 'bt' drop or add a dimension. Without shapes only the type changes.
function Convert:__init(inputShape, outputShape)
   nn.Container.__init(self)
   if outputShape and not inputShape then error 'Expecting non-nil arg 1 when arg 2 is provided' end
   inputShape = inputShape or 'b*'
   self.inputShape, self.outputShape = withBatch(inputShape), withBatch(outputShape or inputShape)
   if (self.inputShape == 'b*') ~= (self.outputShape == 'b*') then error 'Both or neither shapes must be b*' end
   self.inputBatchDim, self.outputBatchDim = self.inputShape:find 'b', self.outputShape:find 'b'
   self.nInputDim = self.inputShape == 'b*' and -1 or #self.inputShape
   self.nOutputDim = self.outputShape == 'b*' and -1 or #self.outputShape
end

--- Place of a dimension's letter in a shape.
function Convert:findAxis(letter, shape, silent)
   shape = shape or self.inputShape
   local at = shape:find(letter, 1, true)
   if not at and not silent then error(("Provided shape '%s' has no axis '%s'"):format(shape, letter), 2) end
   return at
end

-- Swaps that bring the letters of `from` into the order of `to`, or nil when the letters differ.
local function swaps(from, to)
   local letters, list = {}, {}
   if #from ~= #to then return nil end
   for c in from:gmatch '.' do letters[#letters + 1] = c end
   for i = 1, #to do
      local j = i
      while letters[j] and letters[j] ~= to:sub(i, i) do j = j + 1 end
      if not letters[j] then return nil end
      if i ~= j then
         letters[i], letters[j] = letters[j], letters[i]
         list[#list + 1] = {j, i}
      end
   end
   return list
end

local makers = {}

-- All but the batch in one dimension.
function makers.bf(self, input)
   local b = self:findAxis 'b'
   if self.inputShape == 'b' then return nn.Reshape(1, true) end
   local net = nn.Sequential()
   if b ~= 1 then net:add(nn.Transpose({1, b})) end
   if #self.inputShape > 2 then net:add(nn.Reshape(input:nElement() / input:size(b), true)) end
   return net:size() > 0 and net or nn.Identity()
end

-- The first time, or the only feature.
function makers.b(self, input)
   local at = self:findAxis('t', nil, true) or self:findAxis 'f'
   if not self:findAxis('t', nil, true) and input:size(at) > 1 then
      error('Cannot convert shape ' .. self.inputShape .. ' to b when feature > 1', 0)
   end
   return nn.Select(at, 1)
end

function makers.bt(self)
   if self.inputShape ~= 'b' then error("cannot convert shape '" .. self.inputShape .. "' to bt", 0) end
   return nn.Reshape(1, true)
end

--- Makes the module that does the work, at the first forward.
function Convert:buildConverter(input)
   local list = swaps(self.inputShape, self.outputShape)
   local maker = makers[self.outputShape]
   if list then
      self.converter = #list > 0 and nn.Transpose(unpack(list)) or nn.Identity()
   elseif maker then
      self.converter = maker(self, input)
   else
      error(('Unrecognized conversion of shape %s to %s'):format(self.inputShape, self.outputShape), 0)
   end
   self.converter:type(self._type)
   self.modules[1] = self.converter
end

-- The input in the module's type and with a batch dimension; whether that was added.
local function prepare(self, input)
   if input:type() ~= self._type then input = input:type(self._type) end
   if input:dim() >= self.nInputDim then return input, false end
   return nn.utils.addSingletonDimension(input, self.inputBatchDim), true
end

function Convert:updateOutput(input)
   local x, single = prepare(self, input)
   if not self.converter then self:buildConverter(x) end
   local y = self.converter:updateOutput(x)
   self.output = single and y:select(self.outputBatchDim, 1) or y
   return self.output
end

function Convert:updateGradInput(input, gradOutput)
   local x, single = prepare(self, input)
   if single then gradOutput = nn.utils.addSingletonDimension(gradOutput, self.outputBatchDim) end
   local g = self.converter:updateGradInput(x, gradOutput)
   if single then g = g:select(self.inputBatchDim, 1) end
   self.gradInput = g:type() == input:type() and g or g:type(input:type())
   return self.gradInput
end
