-- What the random programs call: classes, iterators, modules, functions that are compiled or disabled (how to wrap a function -> library).

require 'nn'
local optim = require 'optim'

local Acc = torch.class 'fuzz.Acc'
function Acc:__init(n) self.n, self.total = n, torch.zeros(2) end
function Acc:add(v)
   self.n = self.n + 1
   self.total:add(v:narrow(1, 1, 2))
   return self
end
function Acc:mean() return self.total:sum() / self.n end
function Acc:__tostring() return 'Acc ' .. self.n end
local SubAcc, parent = torch.class('fuzz.SubAcc', 'fuzz.Acc')
function SubAcc:__init(n)
   parent.__init(self, n)
   self.extra = 1
end
function SubAcc:mean() return parent.mean(self) + self.extra end

local Double = torch.autograd.Function.extend 'Double'
function Double.forward(ctx, x)
   ctx.y = x * 2
   return ctx.y
end
function Double.backward(_, dy) return dy * 2 end

-- A class with every metamethod.
local function class()
   local Class = {factor = 3}
   function Class.__index(_, k)
      if k == 'computed' then return 'c' end
      return Class[k]
   end
   function Class:value(v) return self.own * v + self.factor end
   function Class:scaled(a) return a * self.factor + self.own end
   local function own(a) return type(a) == 'table' and a.own or a end
   local function new(v) return setmetatable({own = v}, Class) end
   function Class.__add(a, b) return new(own(a) + own(b)) end
   function Class.__mul(a, b) return new(own(a) * own(b)) end
   function Class.__div(a, b) return new(own(a) / own(b)) end
   function Class.__mod(a, b) return new(own(a) % own(b)) end
   function Class.__pow(a, b) return new(own(a) ^ own(b)) end
   function Class.__unm(a) return new(-own(a)) end
   function Class.__eq(a, b) return a.own == b.own end
   function Class.__lt(a, b) return a.own < b.own end
   function Class.__le(a, b) return a.own <= b.own end
   function Class.__concat(a, b) return tostring(own(a)) .. '|' .. tostring(own(b)) end
   function Class.__call(self, a, b) return self.own + a, b end
   function Class.__tostring(self) return 'object ' .. self.own end
   return Class
end

local function new(Class, t)
   Class.__index = rawget(Class, '__index') or Class
   return setmetatable(t, Class)
end

local function model(kind)
   torch.manualSeed(kind)
   local net = nn.Sequential():add(nn.Linear(4, 3))
   if kind % 4 == 0 then net:add(nn.Tanh()):add(nn.BatchNormalization(3)) -- behind a Linear its bias would have a gradient of noise
   elseif kind % 4 == 1 then net:add(nn.Tanh())
   elseif kind % 4 == 2 then net:add(nn.ConcatTable():add(nn.Linear(3, 3)):add(nn.Identity())):add(nn.CAddTable())
   else net:add(nn.Dropout(0.5)):add(nn.Sigmoid()) end
   net:add(nn.Linear(3, 2)):add(nn.LogSoftMax())
   local params, grads = net:getParameters()
   grads:zero()
   return net, nn.ClassNLLCriterion(), params, grads
end

-- Three rows of four from a vector of any size (two normalised ones would have a gradient of noise).
local function batch(v)
   local b = torch.Tensor(3, 4):zero()
   for i = 1, 3 do b[i]:narrow(1, 1, 2):copy(v:narrow(1, i, 2)) end
   return b
end

--- The library of one run. wrap: eager or compiled.
return function(wrap)
   local lib = {new = new, class = class, net = model, batch = batch, Acc = fuzz.Acc, SubAcc = fuzz.SubAcc, Double = Double, optim = optim} -- luacheck: ignore
   lib.locked = setmetatable({v = 1}, {__metatable = 'locked'})
   function lib.target(v) return v:narrow(1, 1, 3):gt(0):double():add(1) end
   function lib.stateless(n, i) if i < n then return i + 1, i * i end end
   function lib.steps(n)
      local i = 0
      return function()
         i = i + 1
         if i <= n then return i, n - i end
      end
   end
   function lib.each(list, f) for _, v in ipairs(list) do f(v) end end
   function lib.fails(n)
      if n > 1 then error 'too much' end
      if n < 0 then error({n = n}) end
      return n
   end
   lib.note = torch.compiler.disable(function(log, v) log[#log + 1] = torch.isTensor(v) and v:sum() or v or false end)
   lib.backward = torch.compiler.disable(function(net, input, out) net:backward(input, torch.tanh(out)) end)
   lib.tape = torch.compiler.disable(function(loss) loss:backward() end)
   lib.inner = wrap(function(k, a) return (a * k):sum() + k end)
   return lib
end
