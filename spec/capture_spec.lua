-- The census of what is captured (examples/bench/capture.lua): closures as programs of Torch7 write them, and small workloads.
local trial = require 'relume.jit.trial'
local capture

-- graphs and breaks of a warm call; calls of tensor functions that are left, where some are.
local closures = {
   ['feval and optim.sgd'] = {1, 0}, ['optim.adam with penalties in feval'] = {1, 0}, ['clones over time steps'] = {1, 0}, ['table modules'] = {1, 0},
   ['user module with its own gradients'] = {1, 0}, ['gradient clipping by norm'] = {4, 1}, ['learning-rate decay by hand'] = {1, 0},
   ['logging every third step'] = {1, 0}, ['early exit on NaN'] = {5, 1}, ['two networks against each other'] = {1, 0}, ['siamese twins'] = {1, 0},
   ['batches from a shuffled set'] = {1, 0, 6}, ['dropout and batch normalisation, training and evaluation'] = {1, 0},
   ['torch.grad, parameters in tables'] = {1, 0},
}

describe('the census of capture', function()
   local before, was
   setup(function()
      before, was = torch.getdefaulttensortype(), trial.on
      torch.setdefaulttensortype 'torch.FloatTensor'
      capture = dofile 'examples/bench/capture.lua'
   end)
   teardown(function()
      torch.setdefaulttensortype(before)
      trial.on = was
   end)

   local function check(r, want)
      assert.equal(want[1], r.graphs, r.name .. ': graphs')
      assert.equal(want[2], r.breaks, r.name .. ': breaks')
      assert.equal(want[3] or 0, r.left, r.name .. ': calls that were not captured')
      assert.equal(0, r.limit, r.name .. ': calls beyond the limit')
      assert.is_true(r.difference < 1e-5, r.name .. ' differs by ' .. r.difference)
      assert.is_true(r.compiles <= 10, r.name .. ': ' .. r.compiles .. ' compiles')
   end

   it('takes the closures whole', function()
      local seen = 0
      capture.closures({}, function(r)
         check(r, assert(closures[r.name], r.name))
         seen = seen + 1
      end)
      assert.equal(14, seen)
   end)

   for _, name in ipairs {'mlp', 'fuse', 'dqn', 'vae', 'dlrm', 'unet'} do
      it('takes the workload ' .. name .. ' whole', function()
         local tiny = dofile 'examples/bench/tiny.lua'
         local make = assert(loadfile('examples/bench/workloads/' .. name .. '.lua'))()
         check(capture.step(name, capture.maker(make, tiny[name])), {1, 0})
      end)
   end
end)
