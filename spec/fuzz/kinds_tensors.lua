-- Statements: tensors changed in place, views, storages, other types, random draws (generator -> lines).

local Gen = require 'fuzz.generate'
local T, V, D, M = {}, {}, {}, {}

-- In place ---------------------------------------------------------------------------------------------------------------------

function T.newTensor(g) g:let('vec', 'a', '%s', g:vec()) end
function T.change(g) g:line('%s:%s(%s)', g:anyVec(), g:one {'add', 'mul', 'fill', 'div', 'sub'}, g:one {g:num(2), '0.5', '-1', '2'}) end
function T.changeBy(g) g:line('%s:%s(%s)', g:anyVec(), g:one {'add', 'cmul', 'copy'}, g:vec(1)) end
function T.changeBoth(g) g:line('%s:%s(%s, %s)', g:anyVec(), g:one {'add', 'cmul'}, g:anyVec(), g:vec(1)) end
function T.scaled(g) g:line('%s:add(%s, %s)', g:anyVec(), g:num(1), g:vec(1)) end
function T.triple(g) g:line('%s:%s(%s, %s, %s)', g:anyVec(), g:one {'addcmul', 'addcdiv'}, g:one {'0.5', g:num(2)}, g:vec(1),
   'torch.abs(' .. g:vec(1) .. '):add(1)') end
function T.squash(g) g:line('%s:%s()', g:anyVec(), g:one {'tanh', 'abs', 'sigmoid', 'sign', 'floor', 'zero', 'neg'}) end
function T.clamp(g) g:line('%s:clamp(-1, %s)', g:anyVec(), g:one {'1', 'cfg.scale'}) end
function T.element(g) g:line('%s[%d] = %s', g:anyVec(), g:index(), g:num(1)) end
function T.elementAt(g) g:line('%s[math.floor(math.abs(%s)) %% 3 + 1] = %s', g:anyVec(), g:one(g.vars.num), g:num(2)) end
function T.range(g) g:line('%s[{{%d, %d}}] = %s', g:anyVec(), g:pick(2), 2 + g:pick(2), g:num(2)) end
function T.last(g) g:line('last = %s', g:one {'last:add(x)', 'x', 'last + y', g:vec()}) end
function T.into(g) g:line('torch.%s(%s, %s, %s)', g:one {'add', 'cmul'}, g:anyVec(), g:anyVec(), g:vec(1)) end
function T.applied(g) g:line('%s:apply(function(v) count = count + 1 return v %s end)', g:anyVec(), g:one {'* 2', '+ n', '- count'}) end
function T.mapped(g) g:line('%s:map(%s, function(a, b) return a + b end)', g:anyVec(), g:anyVec()) end
function T.show(g) g:line('local _ = tostring(%s)', g:anyVec()) end
function T.values(g) g:line('log[#log + 1] = %s', g:one {g:anyVec() .. ':totable()', g:anyVec() .. ':sum()', g:anyVec() .. ':size()',
   g:anyVec() .. ':clone()', g:anyVec() .. '[2]'}) end
function T.random(g)
   local v = g:anyVec()
   g:line('%s:%s', v, g:one {('add(torch.rand(%s:size(1)))'):format(v), ('add(torch.randn(%s:size(1)))'):format(v), 'uniform(-1, 1)',
      'normal(0, 1)', 'bernoulli(0.5)',
      'random(1, 4)', 'exponential(1)'})
end
function T.permuted(g) g:let('vec', 'a', '%s:index(1, torch.randperm(x:size(1)):long())', g:anyVec()) end
function T.seeded(g) g:line(g:one {'torch.manualSeed(count)', 'log[#log + 1] = torch.uniform()', 'log[#log + 1] = torch.random(1, 10)',
   'local r = torch.getRNGState() torch.rand(2) torch.setRNGState(r)'}) end
function T.matrix(g) g:let('mat', 'm', '%s', g:one {'torch.ger(torch.range(1, 3), x)',
   g:anyVec() .. ':view(1, -1):expand(3, x:size(1)):clone()',
   'torch.rand(3, x:size(1))', 'torch.cat({x:view(1, -1), y:view(1, -1), x:view(1, -1)}, 1)'}) end

-- Matrices -----------------------------------------------------------------------------------------------------------------------

function M.make(g) T.matrix(g) end
function M.changed(g)
   if #g.vars.mat == 0 then return T.matrix(g) end
   local m = g:one(g.vars.mat)
   g:line('%s:%s', m, g:one {'add(1)', 'tanh()', 'cmul(' .. m .. ')', 'addmm(torch.ones(3, 3), ' .. m .. ')', 'addr(torch.ones(3), ' .. g:anyVec() .. ')',
      'add(' .. g:anyVec() .. ':view(1, -1):expandAs(' .. m .. '))', 'cdiv(torch.abs(' .. m .. '):add(1))', 'apply(function(v) return v + 1 end)',
      'copy(' .. m .. ':t():contiguous():view(3, -1))', 'indexFill(2, torch.LongTensor {1, 3}, n)'})
end
function M.reduced(g)
   if #g.vars.mat == 0 then return T.matrix(g) end
   local m = g:one(g.vars.mat)
   g:line('log[#log + 1] = %s', g:one {m .. ':sum(2)', m .. ':mean(1)', m .. ':t():max(1)', '(' .. m .. ':min(2))', m .. ':norm(2, 1)', m .. ':std()',
      'torch.cumsum(' .. m .. ', 2)', 'torch.sort(' .. m .. ', 2)', m .. ':t():contiguous():sum(1)', m .. ':prod(2)', 'select(2, ' .. m .. ':max(2))',
      m .. ':var(1)', m .. ':t() * ' .. m, 'torch.mm(' .. m .. ', ' .. m .. ':t())', m .. ':trace()', 'torch.dist(' .. m .. ', ' .. m .. ' * 2)'})
end
function M.shaped(g)
   if #g.vars.mat == 0 then return T.matrix(g) end
   local m = g:one(g.vars.mat)
   g:let('mat', 'm', '%s', g:one {m .. ':t():t()', m .. ':clone()', m .. ':index(1, torch.LongTensor {3, 1, 2})', m .. ':narrow(1, 1, 2):sum(1):expand(3, x:size(1))',
      'torch.cat({' .. m .. '[1]:view(1, -1), ' .. m .. ':narrow(1, 2, 2)}, 1)', m .. ':view(-1):view(3, -1)', 'torch.cat(' .. m .. ', ' .. m .. ', 1):narrow(1, 2, 3)',
      m .. ':view(3, 1, -1):select(2, 1)', 'torch.repeatTensor(' .. m .. '[2], 3, 1)', m .. ':permute(2, 1):t()', m .. ' / 2', 'torch.cmax(' .. m .. ', 0)'})
end
function M.vector(g)
   if #g.vars.mat == 0 then return T.matrix(g) end
   local m = g:one(g.vars.mat)
   g:let('vec', 'a', '%s', g:one {m .. ':mean(1):view(-1)', m .. ':t():contiguous():sum(2):view(-1)', '(' .. m .. ':max(1)):view(-1)', m .. ':select(1, 2)',
      'torch.mv(' .. m .. ':t(), torch.range(1, 3))', m .. ':narrow(1, 2, 1):squeeze()', 'torch.cumsum(' .. m .. ', 1)[3]'})
end
function M.network(g) g:let('vec', 'a', '%s', g:one {'nn.Tanh():forward(x)', 'nn.SoftMax():forward(' .. g:anyVec() .. ')', 'nn.ReLU():forward(y - 0.5)',
   'nn.Identity():forward(x)', 'nn.MulConstant(n):forward(x)', 'nn.Sequential():add(nn.Tanh()):add(nn.AddConstant(1)):forward(' .. g:anyVec() .. ')'}) end

-- Views and storages -----------------------------------------------------------------------------------------------------------

function V.view(g)
   local name = g:name 'w'
   g:line('local %s = %s:%s', name, g:anyVec(), g:one {'narrow(1, 1, 2)', 'narrow(1, 3, 2)', 'sub(2, 3)', 'sub(-2, -1)',
      'unfold(1, 2, 1)', 'view(1, -1)',
      'view(-1, 1):t()', 'narrow(1, 2, 1)', 'unfold(1, 1, 2):select(2, 1)'})
   g:line('%s:%s(%s)', name, g:one {'add', 'mul', 'fill'}, g:num(2))
   if g:chance(3) then g:line('log[#log + 1] = %s', name) end
end
function V.viewLater(g)
   local name = g:name 'w'
   g:line('local %s = %s:narrow(1, %d, 2)', name, g:anyVec(), g:pick(3))
   g:statements(2)
   g:line('%s:%s', name, g:one {'add(1)', 'copy(x:narrow(1, 1, 2))', 'mul(n)', 'zero()'})
   g:line('log[#log + 1] = %s:sum()', name)
end
function V.returned(g) g:let('vec', 'a', '%s', g:one {'x:view(-1)', 'x:narrow(1, 1, x:size(1))', 'last:select(1, 1) and last',
   'x:view(1, -1):t():select(2, 1)',
   'x:expandAs(x)', 'x:t()'}) end
function V.row(g)
   if #g.vars.mat == 0 then return T.matrix(g) end
   g:line('%s%s', g:one(g.vars.mat), g:one {'[2]:add(1)', ':t()[1]:mul(2)', ':select(2, 2):fill(n)', ':narrow(2, 1, 2):zero()',
      '[{2, 3}] = 7', '[{{}, 1}] = 0', '[{{1, 2}, {2, 3}}]:add(1)',
      ':t():copy(' .. g:one(g.vars.mat) .. ':t() + 1)', '[1] = x', '[2]:copy(y)', ':add(' .. g:one(g.vars.mat) .. ')'})
end
function V.matVec(g)
   if #g.vars.mat == 0 then return T.matrix(g) end
   g:let('vec', 'a', '%s', g:one {('torch.mv(%s:t(), torch.ones(3))'):format(g:one(g.vars.mat)), ('%s[1]'):format(g:one(g.vars.mat)),
      ('%s:t():select(2, 1)'):format(g:one(g.vars.mat)),
      ('%s:max(1):select(1, 1)'):format(g:one(g.vars.mat)), ('(%s:t() * torch.ones(3))'):format(g:one(g.vars.mat))})
end
function V.resize(g)
   local name = g:name 'z'
   g:line('local %s = %s:clone()', name, g:anyVec())
   g:line('%s:%s', name, g:one {'resize(2, 2):add(1)', 'resize(8):narrow(1, 6, 3):fill(1)', 'resizeAs(torch.ones(2)):mul(3)', 'resize(1)',
      'set(x)', 'set(y):add(1)', 'set()', 'resize(0)'})
   g:line('log[#log + 1] = %s', name)
end
function V.buffer(g)
   g:line('buffer%s', g:one {':resize(4):fill(n)', ':resizeAs(x):copy(x)', ':set(x:clone())', ':set(last)', ':resize(2, 2):zero()',
      ' = buffer:clone():resize(3):fill(count)', ':resizeAs(y):copy(y):add(1)',
      ':add(1)', ':resize(6):zero()', ':set(x):mul(2)'})
end
function V.storage(g)
   g:line('%s', g:one {'x:storage():fill(n)', 'x:storage()[1] = n', 'log[#log + 1] = x:storage():size()',
      'log[#log + 1] = torch.Tensor(y:storage(), 1, 2, 1):clone()', 'log[#log + 1] = x:stride(1)',
      'log[#log + 1] = x:isContiguous()', 'log[#log + 1] = x:storageOffset()', 'log[#log + 1] = x:isSameSizeAs(y)',
         'log[#log + 1] = x:isSetTo(y)', 'log[#log + 1] = x:size():totable()[1]',
      'log[#log + 1] = torch.Tensor(x:size()):fill(2)', 'log[#log + 1] = torch.LongStorage({2, 3})[2]'})
end
function V.keepView(g) g:line('t.kept = %s', g:one {'x:narrow(1, 1, x:size(1))', 'last:view(-1)', 'y:view(1, -1):select(1, 1)'}) end

-- Types ------------------------------------------------------------------------------------------------------------------------

function D.float(g)
   local name = g:name 'e'
   g:line('local %s = (%s):%s():%s', name, g:vec(1), g:one {'float', 'long', 'int', 'byte', 'char', 'short', 'half'}, g:one {'add(1)',
      'mul(2)', 'clone()', 'abs()', 'fill(3)', 'zero()'})
   g:line('log[#log + 1] = %s', g:one {name, name .. ':sum()', name .. ':double()', name .. '[1]', name .. ':max()', name .. ' * 2'})
   g:let('vec', 'a', '%s:double()', name)
end
function D.mask(g)
   local name = g:name 'b'
   g:line('local %s = %s', name, g:one {('%s:gt(0)'):format(g:anyVec()), ('%s:le(%s)'):format(g:anyVec(), g:num(2)),
      ('torch.ge(%s, %s)'):format(g:anyVec(), g:anyVec()), ('%s:eq(x)'):format(g:anyVec())})
   g:line('%s', g:one {('%s[%s] = %s'):format(g:anyVec(), name, g:num(2)), ('%s:maskedFill(%s, 2)'):format(g:anyVec(), name),
      ('log[#log + 1] = %s'):format(name), ('log[#log + 1] = %s:sum()'):format(name),
      ('log[#log + 1] = %s:maskedSelect(%s)'):format(g:anyVec(), name), ('log[#log + 1] = %s[%s]'):format(g:anyVec(), name)})
end
function D.where(g) g:let('vec', 'a', '%s', g:one {('torch.cmul(%s, x:gt(0):double())'):format(g:anyVec()),
   ('x:ne(y):double() + %s'):format(g:anyVec())}) end
function D.indices(g)
   local name = g:name 'i'
   g:line('local %s = torch.LongTensor {%d, %d, %d}', name, g:pick(4), g:pick(4), g:pick(4))
   local v = g:anyVec()
   g:line('%s', g:one {('log[#log + 1] = %s:index(1, %s)'):format(v, name), ('%s:indexAdd(1, %s, torch.ones(3))'):format(v, name),
      ('%s:indexFill(1, %s, n)'):format(v, name),
      ('%s:indexCopy(1, torch.LongTensor {1, 2, 4}, torch.range(1, 3))'):format(v), ('log[#log + 1] = %s:gather(1, %s)'):format(v, name),
         ('%s:scatter(1, %s, 5)'):format(v, name)})
end
function D.sorted(g)
   local a, b = g:name 'a', g:name 'i'
   g:line('local %s, %s = %s(%s, 1)', a, b, g:one {'torch.sort', 'torch.max', 'torch.min'}, g:anyVec())
   g:line('log[#log + 1] = %s:%s', g:one {a, b}, g:one {'sum()', 'clone()', 'view(-1)'})
end
function D.defaultType(g)
   g:line "torch.setdefaulttensortype 'torch.FloatTensor'"
   g:line('log[#log + 1] = torch.%s', g:one {'ones(2)', 'Tensor {1, 2}', 'rand(2)', 'Tensor(2):fill(n)'})
   g:line "torch.setdefaulttensortype 'torch.DoubleTensor'"
end
function D.literal(g) g:line('log[#log + 1] = torch.%s', g:one {'Tensor {1, n}', 'FloatTensor {{1, 2}, {3, n}}', 'LongTensor {1, count}',
   'Tensor({3, 2}):fill(1)', 'Tensor(torch.LongStorage {2, 2}):fill(n)', 'linspace(0, 1, 3)',
   'eye(2)', 'ByteTensor(2):fill(300)', 'Tensor(2):random(1, 2)', 'Tensor()', 'Tensor {}'}) end
function D.integer(g) g:line('log[#log + 1] = %s', g:one {'torch.LongTensor {7, -7} / 2',
   'torch.IntTensor {5, 6}:cdiv(torch.IntTensor {2, 4})', 'torch.ByteTensor {200} * 2', 'torch.CharTensor {100}:add(100)',
   'torch.LongTensor(2):fill(n)',
   'torch.LongTensor {1, 2}:sum()', 'torch.ByteTensor {1, 0}:any()', 'torch.ByteTensor {1, 1}:all()', 'torch.LongTensor {5, 3} % 2'}) end
function D.mixed(g) if g:chance(4) then g:line('log[#log + 1] = x + %s', g:one {'torch.ones(x:size(1)):float()',
   'torch.LongTensor(x:size(1)):fill(1)'}) end end

Gen.family('tensors', T)
Gen.family('views', V, {viewLater = true})
Gen.family('types', D)
Gen.family('matrices', M)
