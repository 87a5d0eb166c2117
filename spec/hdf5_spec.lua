-- hdf5: what is written is read again, in part, in groups, in chunks; errors name the path.
require 'helper'

local here, hdf5 = pcall(require, 'hdf5')
if not here then
   describe('hdf5', function()
      it('says which library is missing', function() assert.truthy(tostring(hdf5):find 'got no library libhdf5, need HDF5') end)
   end)
   return
end

-- Runs f(path) with the name of a file that is removed afterwards.
local function withFile(f)
   local path = os.tmpname()
   local ok, err = pcall(f, path)
   os.remove(path)
   if not ok then error(err, 0) end
end

local function raises(text, f, ...)
   local ok, err = pcall(f, ...)
   assert.is_false(ok)
   assert.truthy(tostring(err):find(text, 1, true), err)
end

describe('hdf5', function()
   it('keeps tensors of every type', function()
      withFile(function(path)
         local all = {}
         for _, kind in ipairs {'Byte', 'Char', 'Short', 'Int', 'Long', 'Float', 'Double'} do all[kind] = torch[kind .. 'Tensor']():resize(2, 3):fill(7) end
         all.Byte[1][1], all.Char[1][1], all.Long[1][1] = 255, -128, 2^40
         local file = hdf5.open(path, 'w')
         file:write('/', all)
         file:write('half', torch.HalfTensor {1, 2})
         file:close()
         local back = hdf5.open(path, 'r'):all()
         for kind, t in pairs(all) do
            assert.equal(t:type(), back[kind]:type())
            assert.is_true(torch.equal(t, back[kind]))
         end
         assert.equal('torch.FloatTensor', back.half:type())
      end)
   end)

   it('reads groups, sizes and parts', function()
      withFile(function(path)
         local file = hdf5.open(path, 'w')
         local x = torch.range(1, 24):resize(2, 3, 4)
         file:write('/a/deep/x', x)
         file:write('b', {y = torch.ones(2), none = {}})
         file:write('t', x:transpose(1, 3))
         assert.same({2, 3, 4}, file:read('a/deep/x'):dataspaceSize())
         assert.is_true(torch.equal(x:sub(2, 2, 1, 2, 3, 3), file:read('/a/deep/x'):partial(2, {1, 2}, {3, 3})))
         assert.is_true(torch.equal(x:transpose(1, 3):contiguous(), file:read('t'):all()))
         assert.same({1, 1}, file:read('b'):read('y'):all():totable())
         assert.same({}, file:read('b/none'):all())
         assert.equal(torch.DoubleTensor, file:read('t'):getTensorFactory())
         raises('range 2; got 1 to 9, need a part of 1 to 3', function() file:read('/a/deep/x'):partial(1, {1, 9}, 1) end)
         raises('ranges; got 1, need 3', function() file:read('/a/deep/x'):partial(1) end)
         file:close()
         raises('file is closed', function() return file:read 'b' end)
      end)
   end)

   it('appends to what is in chunks, compressed', function()
      withFile(function(path)
         local file = hdf5.open(path, 'w')
         file:write('x', torch.zeros(30, 4), hdf5.DataSetOptions():setChunked(100, 2):setDeflate())
         file:append('x', torch.ones(2, 4))
         file:append('new', torch.ones(1))
         file:append('new', torch.ones(2))
         file:write('fixed', torch.ones(2))
         assert.same({32, 4}, file:read('x'):dataspaceSize())
         assert.equal(8, file:read('x'):all():sum())
         assert.same({3}, file:read('new'):dataspaceSize())
         raises('need a dataset written in chunks', function() file:append('fixed', torch.ones(2)) end)
         raises('append, dimension 2; got 3, need 4', function() file:append('x', torch.ones(2, 3)) end)
         raises('chunk sizes; got 1, need 2', function() file:write('y', torch.ones(2, 2), hdf5.DataSetOptions():setChunked(2)) end)
         raises('need setChunked', function() file:write('z', torch.ones(2, 2), hdf5.DataSetOptions():setDeflate(3)) end)
         file:close()
      end)
   end)

   it('opens as asked, and says what is wrong', function()
      withFile(function(path)
         raises('[hdf5] file cannot be opened; got ' .. path .. ' with mode r', hdf5.open, path, 'r')
         os.remove(path)
         local file = hdf5.open(path)
         file:write('x', torch.ones(1))
         raises('write; got /x, which is there already', file.write, file, 'x', torch.ones(1))
         raises('data for /y; got number, need a tensor', file.write, file, 'y', 1)
         raises('data for /; got torch.DoubleTensor, need a table', file.write, file, '/', torch.ones(1))
         file:close()
         raises('with mode w-', hdf5.open, path, 'w-')
         raises('mode; got q', hdf5.open, path, 'q')
         file = hdf5.open(path, 'r')
         raises('no such path; got /nope', file.read, file, 'nope')
         raises('need a file open for writing', file.write, file, 'n', torch.ones(1))
         local again = torch.deserialize(torch.serialize(file))
         assert.same({1}, again:read('x'):all():totable())
         again:close()
         file:close()
      end)
   end)
end)
