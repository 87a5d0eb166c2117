-- gnuplot: what the functions send to the program, seen by a program that keeps it; histograms; plots of optim.Logger.
require 'helper'
local gnuplot = require 'gnuplot'

local folder, received

-- Runs f; what was sent to gnuplot.
local function sent(f)
   f()
   gnuplot.closeall()
   local file = assert(io.open(received))
   local text = file:read '*a'
   file:close()
   return text
end

describe('gnuplot', function()
   setup(function()
      folder = os.tmpname()
      os.remove(folder)
      os.execute('mkdir ' .. folder)
      received = folder .. '/received'
      local program = folder .. '/gnuplot'
      local file = assert(io.open(program, 'w'))
      file:write(('#!/bin/sh\ncat > %s\n'):format(received))
      file:close()
      os.execute('chmod +x ' .. program)
      gnuplot.setgnuplotexe(program)
   end)
   teardown(function() os.execute('rm -r ' .. folder) end)

   it('sends curves, labels and the file at which they end', function()
      local text = sent(function()
         gnuplot.pngfigure(folder .. '/a.png')
         gnuplot.plot({'one', torch.Tensor {5, 6}, '-'}, {torch.Tensor {1, 2}, torch.Tensor {3, 4.5}, '+'})
         gnuplot.xlabel 'the "x"'
         gnuplot.axis {0, 1, '', 2}
         gnuplot.movelegend('left', 'middle')
         gnuplot.plotflush()
      end)
      assert.truthy(text:find('set term png', 1, true))
      assert.truthy(text:find("plot '-' title 'one' with lines, '-' title '' with points\n1 5\n2 6\ne\n1 3\n2 4.5\ne\n", 1, true), text)
      assert.truthy(text:find('set xlabel "the \\"x\\""\nset output "' .. folder .. '/a.png"\nrefresh\n', 1, true))
      assert.truthy(text:find('set xrange [0:1]', 1, true))
      assert.truthy(text:find('set yrange [:2]', 1, true))
      assert.truthy(text:find('set key left center', 1, true))
   end)

   it('sends vectors, weights of splines, surfaces, points, images and bars', function()
      local one = torch.ones(1)
      assert.truthy(sent(function() gnuplot.plot(torch.Tensor {{1, 2, 3, 4}}, 'v') end):find('with vectors\n1 2 3 4\ne', 1, true))
      assert.truthy(sent(function() gnuplot.plot(one, '~0.5') end):find('smooth acsplines\n1 1 0.5\ne', 1, true))
      assert.truthy(sent(function() gnuplot.splot(torch.Tensor {{7, 8}, {9, 10}}) end):find('with lines\n1 1 7\n1 2 8\n\n2 1 9\n2 2 10\n\ne', 1, true))
      assert.truthy(sent(function() gnuplot.scatter3(one, one * 2, one * 3) end):find('with points\n1 2 3\ne', 1, true))
      assert.truthy(sent(function() gnuplot.imagesc(torch.Tensor {{7, 8}}, 'color') end):find('matrix with image\n7 8\ne', 1, true))
      assert.truthy(sent(function() gnuplot.bar(torch.Tensor {4}) end):find('with boxes\n1 4\ne', 1, true))
   end)

   it('counts in bins', function()
      local h = gnuplot.histc(torch.Tensor {0, 0.1, 0.9, 1, 1}, 2)
      assert.same({2, 3}, h.raw:totable())
      assert.same({val = 0.75, nb = 3}, h[2])
      assert.equal(2, h.max)
      assert.truthy(tostring(h):find('max:(bin:2/#3/cntr:0.75)', 1, true))
      assert.truthy(sent(function() gnuplot.hist(torch.Tensor {0, 1}, 2) end):find('0.25 1\n0.75 1\ne', 1, true))
   end)

   it('says what is wrong', function()
      assert.has_error(function() gnuplot.plot() end)
      assert.has_error(function() gnuplot.plot(torch.ones(2), torch.ones(3)) end)
      assert.has_error(function() gnuplot.imagesc(torch.ones(2)) end)
      assert.has_error(function() gnuplot.movelegend('top', 'left') end)
      assert.has_error(function() gnuplot.pngfigure '/nonexistent/a.png' end)
   end)

   it('draws what optim.Logger logged', function()
      local log = optim.Logger(folder .. '/deep/er/train.log')
      log:setNames {'loss', 'accuracy'}:style {loss = '-', accuracy = '+'}:display(false)
      log:add {3, 0.1}
      log:add {2, 0.2}
      local text = sent(function() log:plot() end)
      assert.truthy(text:find("'-' title 'loss' with lines, '-' title 'accuracy' with points\n1 3\n2 2\ne\n", 1, true), text)
      assert.truthy(text:find('set output "' .. folder .. '/deep/er/train.log.eps"', 1, true))
   end)
end)
