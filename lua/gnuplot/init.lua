-- gnuplot: plots through the program gnuplot, with the functions of the rock `gnuplot` (tensors -> window or file).
require 'torch'
local paths = require 'paths'
local session = require 'gnuplot.session'
local data = require 'gnuplot.data'

local gnuplot = {histc = require 'gnuplot.hist', setgnuplotexe = session.setProgram}
package.loaded['gnuplot'] = gnuplot
rawset(_G, 'gnuplot', gnuplot)

local function set(...)
   local f = session.get()
   for _, command in ipairs {...} do session.send(f, command) end
   session.refresh(f)
end

local function text(label) return '"' .. tostring(label):gsub('[\\"]', '\\%0') .. '"' end

--- gnuplot's terminal for figures without a file.
function gnuplot.setterm(term) session.term = term end

--- Makes figure n (default: a new one) the current one; returns its number.
function gnuplot.figure(n)
   session.figure(n)
   return session.current
end

-- A figure that is drawn into a file by plotflush, close, and whatever changes it.
local function fileFigure(term)
   return function(name, n)
      local folder = paths.dirname(name)
      if folder ~= '' and not paths.dirp(folder) then error(('[gnuplot] file %s; got no folder %s'):format(name, folder), 2) end
      local f = session.figure(n)
      f.fname, f.term = name, term
      session.prepare(f)
      return session.current
   end
end
gnuplot.epsfigure = fileFigure 'postscript eps enhanced color'
gnuplot.pngfigure = fileFigure 'png size 800,600'
gnuplot.svgfigure = fileFigure 'svg'
gnuplot.pdffigure = fileFigure 'pdfcairo enhanced color'

--- Draws the current figure into a file as well: .eps, .png, .pdf or .svg.
function gnuplot.figprint(name)
   local terms = {eps = 'postscript eps enhanced color', png = 'png size 1024,768', pdf = 'pdfcairo enhanced color', svg = 'svg'}
   local term = terms[name:match '%.(%w+)$']
   if not term then error(('[gnuplot] file %s; need an ending eps, png, pdf or svg'):format(name), 2) end
   local f = session.get()
   session.send(f, ('set term %s\nset output "%s"\nrefresh'):format(term, name))
   session.prepare(f)
end

--- Draws figure n (the current one) again, into its file where it has one.
function gnuplot.plotflush(n)
   local f = session.figures[n or session.current]
   if not f then return print('no figure ' .. tostring(n)) end
   session.refresh(f)
end

function gnuplot.close(n) session.close(n or session.current) end

function gnuplot.closeall()
   for n in pairs(session.figures) do session.close(n) end
end

--- plot([legend,] [x,] y [, style]), or several such lists. Styles: . + - +- | ~ v, or gnuplot's own words.
function gnuplot.plot(...) session.plot(session.get(), data.plot(data.curves(...))) end

--- splot([legend,] z) or (x, y, z): surfaces from matrices.
function gnuplot.splot(...) session.plot(session.get(), data.splot(data.curves(...))) end

--- scatter3([legend,] x, y, z): points in space.
function gnuplot.scatter3(...) session.plot(session.get(), data.splot(data.curves(...), true)) end

--- A matrix as an image; palette 'gray' or 'color'.
function gnuplot.imagesc(x, palette) session.plot(session.get(), data.image(x, palette)) end

--- bar(y) or bar(x, y).
function gnuplot.bar(...)
   local args = {...}
   args[#args + 1] = '|'
   gnuplot.plot(args)
end

--- Plots the histogram of a tensor and returns it; see histc.
function gnuplot.hist(tensor, bins, min, max)
   local h = gnuplot.histc(tensor, bins, min, max)
   local middle = torch.Tensor(#h)
   for i = 1, #h do middle[i] = h[i].val end
   gnuplot.bar(middle, h.raw)
   return h
end

function gnuplot.xlabel(label) set('set xlabel ' .. text(label)) end
function gnuplot.ylabel(label) set('set ylabel ' .. text(label)) end
function gnuplot.zlabel(label) set('set zlabel ' .. text(label)) end
function gnuplot.title(label) set('set title ' .. text(label)) end
function gnuplot.grid(on) set(on and 'set grid' or 'unset grid') end
function gnuplot.logscale(on) set(on and 'set logscale y' or 'unset logscale y') end

--- Place of the legend: left, right or center; bottom, top or middle.
function gnuplot.movelegend(across, up)
   local known = {left = 1, right = 1, center = 1, bottom = 2, top = 2, middle = 2}
   if known[across] ~= 1 or known[up] ~= 2 then
      error(('[gnuplot] legend; got %s, %s, need left, right or center and bottom, top or middle'):format(tostring(across), tostring(up)), 2)
   end
   set('set key ' .. across .. ' ' .. (up == 'middle' and 'center' or up))
end

--- 'auto', 'image' or 'equal' (same scale both ways), 'fill', or {xmin, xmax, ymin, ymax} ('' leaves one open).
function gnuplot.axis(axis)
   if axis == 'auto' then return set('set size nosquare', 'set autoscale') end
   if axis == 'image' or axis == 'equal' then return set 'set size ratio -1' end
   if axis == 'fill' then return set 'set size ratio 1,1' end
   if type(axis) ~= 'table' or #axis ~= 4 then error('[gnuplot] axis; need auto, image, equal, fill or {xmin, xmax, ymin, ymax}', 2) end
   set(('set xrange [%s:%s]'):format(axis[1], axis[2]), ('set yrange [%s:%s]'):format(axis[3], axis[4]))
end

--- Sends a command as it is.
function gnuplot.raw(command) session.send(session.get(), command) end

return gnuplot
