-- SoftMaxTree: log probability of a leaf as the product of softmaxes on the path from the root ({input (n, d), leaves (n)} -> (n)).
-- Source: Mnih and Hinton, A Scalable Hierarchical Distributed Language Model, 2009, with the fields of nnx.

local SoftMaxTree = torch.class('nn.SoftMaxTree', 'nn.Module')

-- Rows of weight for each parent's children (start, count), and each child's parent and place among its siblings.
local function index(self, hierarchy)
   local parents, n, most = {}, 0, 0
   for parent, children in pairs(hierarchy) do
      parents[#parents + 1], n, most = parent, n + children:size(1), math.max(most, parent, children:max())
   end
   table.sort(parents)
   self.nChildNode, self.nParentNode, self.maxNodeId, self.maxParentId = n, #parents, most, parents[#parents]
   self.parentIds, self.childIds = torch.IntTensor(parents), torch.IntTensor(n)
   self.parentChildren = torch.IntTensor(self.maxParentId, 2):fill(-1)
   self.childParent = torch.IntTensor(most, 2):fill(-1)
   local start = 1
   for _, parent in ipairs(parents) do
      local children = hierarchy[parent]
      self.parentChildren[parent][1], self.parentChildren[parent][2] = start, children:size(1)
      for k = 1, children:size(1) do
         self.childIds[start + k - 1] = children[k]
         self.childParent[children[k]][1], self.childParent[children[k]][2] = parent, k
      end
      start = start + children:size(1)
   end
end

--- inputSize; hierarchy: table of parent id -> 1D tensor of the ids of its children; the root's id (1). accUpdate: no gradient buffers.
-- static: parameters() keeps its keys from batch to batch.
function SoftMaxTree:__init(inputSize, hierarchy, rootId, accUpdate, static)
   nn.Module.__init(self)
   if type(hierarchy) ~= 'table' then error('[SoftMaxTree] hierarchy; got ' .. type(hierarchy) .. ', need a table', 3) end
   self.inputSize, self.rootId, self.accUpdate, self.static = inputSize, rootId or 1, accUpdate, static == nil or static
   index(self, hierarchy)
   self.weight, self.bias = torch.Tensor(self.nChildNode, inputSize), torch.Tensor(self.nChildNode)
   if not accUpdate then self.gradWeight, self.gradBias = torch.zeros(self.nChildNode, inputSize), torch.zeros(self.nChildNode) end
   self.updates = {} -- parents that got a gradient
   self._gradInput, self._gradTarget = torch.Tensor(), torch.IntTensor()
   self.gradInput = {self._gradInput, self._gradTarget}
   self:reset()
end

function SoftMaxTree:reset(stdv)
   stdv = stdv and stdv * math.sqrt(3) or 1 / math.sqrt(self.nChildNode * self.inputSize)
   self.weight:uniform(-stdv, stdv)
   self.bias:uniform(-stdv, stdv)
end

-- Calls f(parent, place among the siblings, first row, number of rows) from the leaf up to the root.
local function climb(self, leaf, f)
   local node = leaf
   repeat
      local parent, place = self.childParent[node][1], self.childParent[node][2]
      if parent < 1 then error('[SoftMaxTree] node has no parent; got ' .. node, 3) end
      f(parent, place, self.parentChildren[parent][1], self.parentChildren[parent][2])
      node = parent
   until node == self.rootId
end

function SoftMaxTree:updateOutput(inputTable)
   local input, target = inputTable[1], inputTable[2]
   self.output:resize(input:size(1))
   self._paths = {}
   for i = 1, input:size(1) do
      local sum, path = 0, {}
      climb(self, target[i], function(parent, place, first, count)
         local w, b = self.weight:narrow(1, first, count), self.bias:narrow(1, first, count)
         local log = torch.addmv(b, w, input[i])
         log:add(-log:max())
         log:add(-math.log(torch.exp(log):sum()))
         sum = sum + log[place]
         path[#path + 1] = {parent = parent, place = place, first = first, count = count, log = log}
      end)
      self.output[i], self._paths[i] = sum, path
   end
   return self.output
end

-- Gradient of the scores of a step's children: g (1 at the child taken, minus the softmax).
local function scores(step, g)
   local d = torch.exp(step.log):mul(-g)
   d[step.place] = d[step.place] + g
   return d
end

function SoftMaxTree:updateGradInput(inputTable, gradOutput)
   if not self.gradInput then return end
   self._gradInput:resizeAs(inputTable[1]):zero()
   for i, path in ipairs(self._paths) do
      for _, s in ipairs(path) do self._gradInput[i]:addmv(self.weight:narrow(1, s.first, s.count):t(), scores(s, gradOutput[i])) end
   end
   self._gradTarget:resize(inputTable[2]:size()):zero()
   self.gradInput = {self._gradInput, self._gradTarget}
   return self.gradInput
end

function SoftMaxTree:accGradParameters(inputTable, gradOutput, scale)
   scale = scale or 1
   local dw, db = self.gradWeight, self.gradBias
   if self.accUpdate then dw, db = self.weight, self.bias end -- scale is then minus the learning rate
   for i, path in ipairs(self._paths) do
      for _, s in ipairs(path) do
         local d = scores(s, gradOutput[i] * scale)
         dw:narrow(1, s.first, s.count):addr(d, inputTable[1][i])
         db:narrow(1, s.first, s.count):add(d)
         self.updates[s.parent] = (self.updates[s.parent] or 0) + scale
      end
   end
end

--- Weights and biases of one parent's children, and their gradients.
function SoftMaxTree:getNodeParameters(parent)
   local first, count = self.parentChildren[parent][1], self.parentChildren[parent][2]
   local function part(t) return t and t:narrow(1, first, count) end
   return {part(self.weight), part(self.bias)}, not self.accUpdate and {part(self.gradWeight), part(self.gradBias)} or nil
end

--- Parameters of the parents that got a gradient; of all when none did.
function SoftMaxTree:parameters()
   local params, grads, parents = {}, {}, {}
   for parent in pairs(self.updates) do parents[#parents + 1] = parent end
   table.sort(parents)
   if #parents == 0 then
      if not self.static then return {self.weight, self.bias}, {self.gradWeight, self.gradBias} end
      parents = self.parentIds:totable()
   end
   for k, parent in ipairs(parents) do
      local w, g = self:getNodeParameters(parent)
      local at, behind = self.static and parent or 2 * k - 1, self.static and parent + self.maxParentId or 2 * k
      params[at], params[behind] = w[1], w[2]
      if g then grads[at], grads[behind] = g[1], g[2] end
   end
   return params, grads, {}, self.nChildNode * 2
end

function SoftMaxTree:updateParameters(learningRate)
   local params, grads = self:parameters()
   for k, p in pairs(params) do p:add(-learningRate, grads[k]) end
end

function SoftMaxTree:zeroGradParameters()
   local _, grads = self:parameters()
   for _, g in pairs(grads) do g:zero() end
   for parent in pairs(self.updates) do self.updates[parent] = nil end -- the table may be shared
end

--- Converts all but the indices.
function SoftMaxTree:type(name, cache)
   if not name then return nn.Module.type(self) end
   local kept = {}
   for _, k in ipairs {'parentChildren', 'childParent', 'childIds', 'parentIds', '_gradTarget', '_paths'} do kept[k], self[k] = self[k], nil end
   nn.Module.type(self, name, cache)
   for k, v in pairs(kept) do self[k] = v end
   self.gradInput = {self._gradInput, self._gradTarget}
   return self
end

SoftMaxTree.sharedAccUpdateGradParameters = SoftMaxTree.accUpdateGradParameters

local TreeNLLCriterion = torch.class('nn.TreeNLLCriterion', 'nn.Criterion')

--- Minus the mean of what SoftMaxTree gives.
function TreeNLLCriterion:updateOutput(input)
   self.output = -input:mean()
   return self.output
end

function TreeNLLCriterion:updateGradInput(input)
   self.gradInput:resizeAs(input):fill(-1 / input:nElement())
   return self.gradInput
end
