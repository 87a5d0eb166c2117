-- Output handler of busted: failures where they happen, then one closing line 'N passed, N failed, N skipped' (busted events -> text).
local term = require 'term'

return function(options)
   local busted = require 'busted'
   local handler = require 'busted.outputHandlers.base'()
   local tty = io.type(io.stdout) == 'file' and term.isatty(io.stdout)
   local slow = {}

   local function describe(kind, item)
      local trace = item.element.trace
      local where = trace and trace.short_src and ('%s:%s'):format(trace.short_src, trace.currentline) or ''
      local message = item.message
      if type(message) ~= 'string' then
         message = message == nil and 'nil error' or require('pl.pretty').write(message)
      end
      io.write(('\n%s: %s\n  at %s\n  %s\n'):format(kind, item.name, where, (message:gsub('\n', '\n  '))))
      if options.verbose and item.trace and item.trace.traceback then
         io.write(item.trace.traceback, '\n')
      end
   end

   handler.fileEnd = function(file)
      local short = file.name:gsub('^%./', '')
      slow[#slow + 1] = { name = short, seconds = file.duration or 0 }
      io.write(('%s%-44s %7.2f s%s'):format(tty and '\r' or '', short, file.duration or 0, '\n'))
      io.flush()
      return nil, true
   end

   handler.suiteEnd = function()
      for _, item in ipairs(handler.pendings) do
         io.write(('skipped: %s (%s)\n'):format(item.name, tostring(item.message or 'no reason given')))
      end
      for _, item in ipairs(handler.failures) do
         describe('failure', item)
      end
      for _, item in ipairs(handler.errors) do
         describe('error', item)
      end
      io.write(('\n%.1f seconds\n'):format(handler.getDuration()))
      io.write(('%d passed, %d failed, %d skipped\n'):format(handler.successesCount,
         handler.failuresCount + handler.errorsCount, handler.pendingsCount))
      io.flush()
      return nil, true
   end

   busted.subscribe({ 'file', 'end' }, handler.fileEnd)
   busted.subscribe({ 'suite', 'end' }, handler.suiteEnd)
   return handler
end
