-- Logger: rows of numbers or text in a tab-separated file (values -> file).

local Logger = torch.class('optim.Logger')

--- Opens filename for writing (nil: no file). timestamp (or true) as the second argument adds the date to the name.
function Logger:__init(filename, timestamp)
   if filename then
      if timestamp then
         local path, name = filename:match '^(.-)([^/]*)$'
         filename = path .. os.date('%Y-%m-%d-%H-%M-%S') .. '-' .. name
      end
      local folder = filename:match '^(.*)/'
      if folder and folder ~= '' then os.execute(("mkdir -p '%s'"):format(folder:gsub("'", "'\\''"))) end
      self.name = filename
      self.file = assert(io.open(filename, 'w'))
      self.epsfile = filename .. '.eps'
   end
   self.empty = true
   self.symbols = {}
   self.styles = {}
   self.names = {}
   self.idx = {}
   self.figure = nil
   self.showPlot = true
   self.plotRawCmd = nil
   self.defaultStyle = '+'
   self.logscale = false
end

--- Names the columns: a list.
function Logger:setNames(names)
   self.names = names
   self.empty = false
   self.nsymbols = #names
   for k, key in ipairs(names) do
      if self.file then self.file:write(key .. '\t') end
      self.symbols[k] = {}
      self.styles[k] = {self.defaultStyle}
      self.idx[key] = k
   end
   if self.file then
      self.file:write '\n'
      self.file:flush()
   end
   return self
end

--- One row: a list in the order of the names, or a table by name (whose names are taken on the first call).
function Logger:add(symbols)
   if self.empty then
      self.empty = false
      self.nsymbols = #symbols
      for k, val in pairs(symbols) do
         if self.file then self.file:write(k .. '\t') end
         self.symbols[k] = {}
         self.styles[k] = {self.defaultStyle}
         self.names[k] = k
      end
      self.idx = self.names
      if self.file then self.file:write '\n' end
   end
   for k, val in pairs(symbols) do
      if type(val) == 'number' then
         if self.file then self.file:write(('%11.4e'):format(val)) end
      elseif type(val) == 'string' then
         if self.file then self.file:write(val) end
      else
         error('xlua.Logger: only numbers and strings are accepted; got ' .. type(val), 2)
      end
      if self.file then self.file:write '\t' end
      local column = self.symbols[k] or self.symbols[self.idx[k]]
      if column then column[#column + 1] = val end
   end
   if self.file then
      self.file:write '\n'
      self.file:flush()
   end
end

--- Line styles for plots, by name: one or a list; see gnuplot.plot.
function Logger:style(symbols)
   for name, style in pairs(symbols) do
      if type(style) == 'string' then style = {style} end
      self.styles[self.idx[name] or name] = style
   end
   return self
end

--- Sets the plots' vertical axis to logarithmic.
function Logger:setlogscale(state)
   self.logscale = state
end

--- Whether plot should open a window.
function Logger:display(state)
   self.showPlot = state
end

local function numbers(list)
   for _, v in ipairs(list) do
      if type(v) ~= 'number' then return false end
   end
   return #list > 1
end

-- The curves of some columns (default: all) of more than one number, one for each style.
local function curves(self, names)
   local plots, keys = {}, {}
   for _, name in ipairs(names) do keys[#keys + 1] = self.idx[name] or name end
   if #keys == 0 then
      for key in pairs(self.symbols) do keys[#keys + 1] = key end
      table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
   end
   for _, key in ipairs(keys) do
      local list = self.symbols[key]
      if list and numbers(list) then
         for _, style in ipairs(self.styles[key] or {self.defaultStyle}) do
            plots[#plots + 1] = {tostring(self.names[key] or key), torch.Tensor(list), style}
         end
      end
   end
   return plots
end

--- Plots columns by name (default: all): into a window where there is a display, and into the .eps file beside the log.
function Logger:plot(...)
   local gnuplot = require 'gnuplot'
   local plots = curves(self, {...})
   if #plots == 0 then return end
   local function draw()
      if self.logscale then gnuplot.logscale 'on' end
      gnuplot.plot(plots)
      if self.plotRawCmd then gnuplot.raw(self.plotRawCmd) end
      gnuplot.grid 'on'
      gnuplot.title('<Logger::' .. tostring(self.name) .. '>')
   end
   if self.showPlot then
      self.figure = gnuplot.figure(self.figure)
      draw()
   end
   if self.epsfile then
      os.remove(self.epsfile)
      local figure = gnuplot.epsfigure(self.epsfile)
      draw()
      gnuplot.close(figure)
   end
end

return Logger
