-- Logger: rows of numbers or text in a tab-separated file (values -> file).

local Logger = torch.class('optim.Logger')

--- Opens filename for writing (nil: no file). timestamp (or true) as the second argument adds the date to the name.
function Logger:__init(filename, timestamp)
   if filename then
      if timestamp then
         local path, name = filename:match '^(.-)([^/]*)$'
         filename = path .. os.date('%Y-%m-%d-%H-%M-%S') .. '-' .. name
      end
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
   self.showPlot = false
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

--- Line styles for plots, kept for files of the original.
function Logger:style(symbols)
   for name, style in pairs(symbols) do
      if type(style) == 'string' then style = {style} end
      self.styles[name] = style
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

--- Plots the columns when the gnuplot module is installed and a display is wanted; otherwise does nothing.
function Logger:plot(...)
   if not self.showPlot then return end
   local ok, gnuplot = pcall(require, 'gnuplot')
   if not ok then return end
   local plots = {}
   for name, list in pairs(self.symbols) do
      if #list > 1 then
         plots[#plots + 1] = {tostring(self.names[name] or name), torch.Tensor(list), unpack(self.styles[name] or {})}
      end
   end
   self.figure = gnuplot.figure(self.figure)
   gnuplot.plot(plots)
end
