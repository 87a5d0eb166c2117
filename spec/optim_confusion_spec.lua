-- The confusion matrix as a picture.
describe('optim.ConfusionMatrix', function()
   it('renders as a picture', function()
      local c = optim.ConfusionMatrix {'a', 'b'}
      for _, pair in ipairs {{1, 1}, {2, 1}, {2, 1}, {2, 1}, {2, 2}} do c:add(pair[1], pair[2]) end
      local picture, order = c:render('score', false, 4)
      assert.same({8, 8}, picture:size():totable())
      assert.same({2, 1}, order)
      assert.equal(1, picture[1][1])
      assert.near(picture[5][1], 0.75, 1e-12)
      assert.equal(0.1, picture[4][1])
      assert.same({1, 2}, select(2, c:render('occurrence', false, 4)))
      assert.has_error(function() c:render 'size' end)
   end)
end)
