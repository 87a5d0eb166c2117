-- Mixed precision: torch.autocast's switch and what it rounds, torch.GradScaler's steps, scale and refusals; compiled too.

describe('autocast', function()
   local x, w = torch.FloatTensor(3, 5):uniform(-1, 1), torch.FloatTensor(5, 4):uniform(-1, 1)
   local exact = torch.mm(x, w)

   it('computes products in a half type and gives floats', function()
      for _, half in ipairs {'Half', 'BFloat16'} do
         local y = torch.autocast(half, function() return torch.mm(x, w) end)
         assert.equal('torch.FloatTensor', y:type())
         local name = 'torch.' .. half .. 'Tensor'
         assert.near(torch.mm(x:type(name), w:type(name)):float(), y, 0)
         assert.is_true((y - exact):abs():max() > 0)
      end
      assert.near(exact, torch.mm(x, w), 0)
   end)

   it('goes back to what was, after errors and inside of itself', function()
      assert.has_error(function() torch.autocast('Half', error, 'inside') end)
      assert.near(exact, torch.mm(x, w), 0)
      local outer, inner, later = torch.autocast('Half', function()
         local a = torch.mm(x, w)
         return a, torch.autocast(nil, torch.mm, x, w), torch.mm(x, w)
      end)
      assert.near(exact, inner, 0)
      assert.near(outer, later, 0)
      assert.has_error(function() torch.autocast('NoSuchType', function() end) end)
   end)
end)

describe('GradScaler', function()
   local function scaler() return torch.GradScaler {scale = 8, growth = 4, backoff = 0.25, interval = 2} end

   it('scales losses and divides gradients in place', function()
      local s = scaler()
      assert.equal(24, s:scale(3))
      assert.near(torch.FloatTensor {8, 16}, s:scale(torch.FloatTensor {1, 2}), 0)
      local g = torch.FloatTensor {8, -16, 4}
      assert.is_true(s:unscale(g))
      assert.near(torch.FloatTensor {1, -2, 0.5}, g, 0)
      for _, bad in ipairs {math.huge, -math.huge, 0 / 0} do assert.is_false(s:unscale(torch.FloatTensor {1, bad, 2})) end
      assert.is_false(s:unscale(torch.FloatTensor {math.huge, -math.huge}))
   end)

   it('leaves out steps whose gradients are not finite, and adapts the scale', function()
      local s, steps = scaler(), 0
      local function step() steps = steps + 1 end
      assert.is_true(s:step(torch.FloatTensor {8}, step))
      assert.equal(8, s.factor)
      assert.is_true(s:step(torch.FloatTensor {8}, step))
      assert.equal(32, s.factor) -- after `interval` good steps
      assert.is_false(s:step(torch.FloatTensor {math.huge}, step))
      assert.equal(8, s.factor)
      assert.is_true(s:step(torch.FloatTensor {8}, step))
      assert.is_false(s:step(torch.FloatTensor {0 / 0}, step)) -- the count of good steps begins again
      assert.is_true(s:step(torch.FloatTensor {2}, step))
      assert.equal(2, s.factor)
      assert.equal(4, steps)
   end)

   it('keeps gradients that vanish in Half, in eager and compiled steps', function()
      local function train(compile)
         torch.manualSeed(1)
         local net = nn.Linear(6, 2):float()
         local params, grads = net:getParameters()
         local data, dy, s = torch.FloatTensor(4, 6):uniform(), torch.FloatTensor(4, 2):fill(2e-8), torch.GradScaler {scale = 65536}
         local function gradients()
            torch.autocast('Half', function()
               net:zeroGradParameters()
               net:forward(data)
               net:backward(data, s:scale(dy))
            end)
         end
         if compile then gradients = torch.compile(gradients) end
         for _ = 1, 3 do
            gradients()
            assert.is_true(s:step(grads, function() params:add(-1, grads) end))
         end
         return net.gradWeight, data
      end
      local eager, data = train(false)
      local want = (data:sum(1) * 2e-8):expand(2, 6)
      assert.is_true((eager - want):abs():max() < 2e-3 * want:max())
      assert.is_true((train(true) - want):abs():max() < 2e-3 * want:max())
   end)
end)
