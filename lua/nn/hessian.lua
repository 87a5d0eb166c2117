-- hessian: estimates of the diagonal of the loss's Hessian, to give each parameter a learning rate of its own
-- (module, input, diagonal at the output -> diagonal at the input and at the parameters). Off until nn.hessian.enable().
-- Source: LeCun, Bottou, Orr and Müller, Efficient BackProp, 1998, section 7.4: second derivatives of a layer are left out, so that a linear
-- layer carries the diagonal back with squared weights and inputs, a pointwise one with squared derivatives.

local tape = require 'nn.tape'
nn.hessian = {}
local hessian = nn.hessian

-- Runs f with module's fields replaced, and puts the old ones back.
local function replacing(module, fields, f)
   local kept = {}
   for k, v in pairs(fields) do kept[k], module[k] = module[k], v end
   tape.clear(module) -- what was recorded belongs to the old weights
   local ok, result = pcall(f)
   tape.clear(module)
   for k in pairs(fields) do module[k] = kept[k] end
   if not ok then error(result, 0) end
   return result
end

local function store(module, value)
   if not torch.isTensor(module.diagHessianInput) then module.diagHessianInput = value.new() end
   module.diagHessianInput:resizeAs(value):copy(value)
   return module.diagHessianInput
end

-- The diagonal at the input of a linear layer.
local function linearInput(self, input, diag)
   local squared = torch.cmul(self.weight, self.weight)
   return store(self, replacing(self, {weight = squared, gradInput = input.new(), output = self.output.new()},
      function() return self:updateGradInput(input, diag) end))
end

-- Adds the diagonal at the parameters of a linear layer to diagHessianWeight and diagHessianBias.
local function linearParameters(self, input, diag)
   self:initDiagHessianParameters()
   replacing(self, {gradWeight = self.diagHessianWeight, gradBias = self.diagHessianBias, output = self.output.new()}, function()
      self:accGradParameters(torch.cmul(input, input), diag, 1)
   end)
end

local function initParameters(self)
   self.diagHessianInput = self.diagHessianInput or self.gradInput.new()
   if self.weight then self.diagHessianWeight = self.diagHessianWeight or self.gradWeight:clone():zero() end
   if self.bias then self.diagHessianBias = self.diagHessianBias or self.gradBias:clone():zero() end
end

-- The diagonal at the input of a function of each element: its derivative squared.
local function pointwise(self, input, diag)
   local derivative = replacing(self, {gradInput = input.new(), output = self.output:clone()}, function()
      self:forward(input)
      return self:updateGradInput(input, diag.new(diag:size()):fill(1)):clone()
   end)
   return store(self, derivative:cmul(derivative):cmul(diag))
end

local function reshaped(self, input, diag)
   return store(self, diag:contiguous():view(input:size()))
end

local function ofSquares(self, input)
   return store(self, input.new(input:size()):fill(self.sizeAverage and 2 / input:nElement() or 2))
end

local function ofSizes(self, input)
   return store(self, torch.ne(input, 0):type(input:type()))
end

local Sequential = {}

function Sequential:initDiagHessianParameters()
   for _, m in ipairs(self.modules) do m:initDiagHessianParameters() end
end

-- Calls f(module, its input, the diagonal behind it) from the last module to the first; f gives the diagonal before it.
local function back(self, input, diag, f)
   for i = #self.modules, 1, -1 do diag = f(self.modules[i], i > 1 and self.modules[i - 1].output or input, diag) end
   return diag
end

function Sequential:updateDiagHessianInput(input, diag)
   self.diagHessianInput = back(self, input, diag, function(m, x, d) return m:updateDiagHessianInput(x, d) end)
   return self.diagHessianInput
end

function Sequential:accDiagHessianParameters(input, diag)
   back(self, input, diag, function(m, x, d)
      m:accDiagHessianParameters(x, d)
      return m.diagHessianInput
   end)
end

function Sequential:parameters()
   local lists = {{}, {}, {}}
   for _, m in ipairs(self.modules) do
      for k, part in ipairs {m:parameters()} do
         for _, t in ipairs(part) do table.insert(lists[k], t) end
      end
   end
   return unpack(lists)
end

local Module = {initDiagHessianParameters = function() end, accDiagHessianParameters = function() end}

function Module:updateDiagHessianInput()
   error('[hessian] ' .. torch.typename(self) .. ' has no second derivatives; need one of the layers of nn.hessian', 2)
end

function Module:parameters()
   if not (self.weight or self.bias) then return nil end
   local w, g, h = {}, {}, {}
   for _, name in ipairs {'Weight', 'Bias'} do
      local p = self[name:lower()]
      if p then w[#w + 1], g[#g + 1], h[#h + 1] = p, self['grad' .. name], self['diagHessian' .. name] end
   end
   return w, g, h
end

function Module:getParameters()
   local w, g, h = self:parameters()
   local flat = nn.utils.flatten
   return flat(w), flat(g), h and h[1] and flat(h) or nil
end

local linear = {updateDiagHessianInput = linearInput, accDiagHessianParameters = linearParameters, initDiagHessianParameters = initParameters}
local byClass = {
   Module = Module, Sequential = Sequential, Criterion = {updateDiagHessianInput = Module.updateDiagHessianInput},
   Linear = linear, SpatialConvolution = linear, SpatialConvolutionLocal = linear, SpatialFullConvolution = linear,
   SpatialConvolutionMap = linear, SpatialFullConvolutionMap = linear,
   Tanh = {updateDiagHessianInput = pointwise}, TanhShrink = {updateDiagHessianInput = pointwise}, Sigmoid = {updateDiagHessianInput = pointwise},
   Square = {updateDiagHessianInput = pointwise}, Sqrt = {updateDiagHessianInput = pointwise},
   Reshape = {updateDiagHessianInput = reshaped}, View = {updateDiagHessianInput = reshaped},
   MSECriterion = {updateDiagHessianInput = ofSquares}, WeightedMSECriterion = {updateDiagHessianInput = ofSquares},
   L1Cost = {updateDiagHessianInput = ofSizes},
}

--- Gives the layers updateDiagHessianInput, accDiagHessianParameters and initDiagHessianParameters; parameters and getParameters then have
-- a third result, the diagonals. For good; a second call does nothing.
function hessian.enable()
   for name, methods in pairs(byClass) do
      local class = torch.getmetatable('nn.' .. name)
      for k, f in pairs(methods) do class[k] = f end
   end
   hessian.enable = function() end
end

return hessian
